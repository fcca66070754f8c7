# Judges the KTAP that KUnit wrote to a console: one line per case, and a
# failure for whatever is missing.
#
#   awk -f ktap.awk -v kernel=NAME [-v suite=GLOB] CONSOLE-SECTION
#
# Each suite must have its plan, as many cases as planned and its own result,
# and there must be as many suites as the test says with `| suites N`.

function result(verdict, name, reason)
{
	printf "%s kunit %s %s%s\n", verdict, kernel, name, reason == "" ? "" : ": " reason
	judged++
}

function glob_to_regex(glob)
{
	gsub(/\./, "\\.", glob)
	gsub(/\*/, ".*", glob)
	gsub(/\?/, ".", glob)
	return "^" glob "$"
}

function end_suite(seen)
{
	if (current == "" || current !~ wanted)
		return
	if (plan == "")
		result("FAIL", current, "no plan")
	else if (cases != plan || !cases)
		result("FAIL", current, cases " of " plan " cases")
	if (!seen)
		result("FAIL", current, "no end")
}

# A result line in words: ok N - name # SKIP reason
function judge(line, prefix,    ok, name, skip)
{
	ok = line !~ /^not ok/
	sub(/^(not )?ok [0-9]+ (- )?/, "", line)
	name = line
	sub(/ *#.*/, "", name)
	skip = line ~ /# SKIP/
	sub(/.*# SKIP */, "", line)
	if (!ok)
		result("FAIL", prefix name)
	else if (skip)
		result("SKIP", prefix name, line)
	else
		result("PASS", prefix name)
}

BEGIN { wanted = suite == "" ? "." : glob_to_regex(suite) }

{
	gsub(/\r/, "")
	if (!match($0, /\[ *[0-9]+\.[0-9]+\](\[ *[TC][0-9]+\])? ?/))
		next
	line = substr($0, RSTART + RLENGTH)
}

line ~ /^\| suites [0-9]+$/ { announced = substr(line, 10); next }

line ~ /^    # Subtest: / {
	end_suite(0)
	current = substr(line, 16)
	suites++
	plan = ""
	cases = failed = 0
	next
}

line ~ /^    1\.\.[0-9]+/ { plan = substr(line, 8) + 0; next }

line ~ /^    (not )?ok [0-9]+/ {
	cases++
	failed += line ~ /not ok/
	if (current ~ wanted)
		judge(substr(line, 5), current ".")
	next
}

# The suite's own result says more than its cases only if none of them failed.
line ~ /^(not )?ok [0-9]+/ && current != "" {
	if (line !~ current)
		result("FAIL", current, "ended by: " line)
	end_suite(1)
	if (line ~ /^not ok/ && !failed && current ~ wanted)
		result("FAIL", current, "failed as a whole")
	current = ""
}

END {
	end_suite(0)
	if (announced == "" || announced + 0 != suites + 0)
		result("FAIL", "suites", suites + 0 " ran, the guest has " announced + 0)
	if (!judged)
		result("FAIL", "suites", "0 tests run")
}
