# Searches a guest's console log for what the kernel says when something went
# wrong, and prints those lines, each with the test that it fell into.
#
#   awk -f splats.awk -v expect=FILE LOG
#
# FILE has a line `TEST REGEX` for a test that provokes one splat on purpose.
# Output, tab separated:
#   splat TEST LINE        not allowed; TEST is - outside of all tests
#   expected TEST LINE     as announced
#   last TEST LINE         the last line that the test printed itself
#   end TEST               the log has the test's end

BEGIN {
	test = "-"
	pattern = "WARNING: |BUG: |BUG at |Oops|KASAN: |UBSAN: |INFO: possible|INFO: trying to register" \
		"|INFO: task .* blocked|rcu.*(self-detected stall|detected stalls)|rcu.*kthread starved" \
		"|sleeping function|general protection|[Kk]ernel panic|Call Trace:|refcount_t: " \
		"|unregister_netdevice: waiting|turning off the locking correctness|ODEBUG: " \
		"|new suspected memory leak|soft lockup|hard LOCKUP|unable to handle|corruption|stack guard page"
	ours = "\\[(btlog|tm|audit|torture|leaky|btlog_kunit)( |\\])"
	while (expect && (getline line < expect) > 0) {
		name = line
		sub(/ .*/, "", name)
		sub(/^[^ ]* /, "", line)
		wanted[name] = line
	}
}

function report(kind, text)
{
	printf "%s\t%s\t%s\n", kind, test, text
}

# The trace that belongs to an expected splat comes with it.
function splat(text)
{
	if (test in wanted && text ~ wanted[test]) {
		report("expected", text)
		forgiven = NR + 80
	} else if (!(text ~ /Call Trace:/ && NR <= forgiven)) {
		report("splat", text)
	}
}

# KCSAN finds races of the rest of the kernel as well; they are not for us to
# judge. A report goes on to a line of equal signs.
function kcsan(text)
{
	if (text ~ /BUG: KCSAN/) {
		race = text
		race_ours = 0
	}
	if (race == "")
		return 0
	if (text ~ ours)
		race_ours = 1
	if (text ~ /====================/) {
		if (race_ours)
			splat(race)
		race = ""
	}
	return 1
}

{
	gsub(/\r/, "")
	# The kernel's own lines have a time in front, whatever else is there.
	if (!match($0, /\[ *[0-9]+\.[0-9]+\](\[ *[TC][0-9]+\])? ?/))
		next
	text = substr($0, RSTART + RLENGTH)
}

text ~ /^# begin / { test = substr(text, 9); forgiven = 0; next }
text ~ /^# end / { report("end", ""); test = "-"; next }
text ~ /^\| / { report("last", substr(text, 3)); next }
kcsan(text) { next }
text ~ pattern { splat(text) }
END { if (race != "" && race_ours) splat(race) }
