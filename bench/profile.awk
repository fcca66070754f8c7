# Reads a sorted symbol table, then QEMU's log of executed blocks of one
# instruction each. Prints for every operation of the bench's modules how many
# instructions each function took in its last call.

# The last symbol at or below an address; both have 16 hexadecimal digits.
function symbol(pc,   lo, hi, mid) {
	if (pc in known)
		return known[pc]
	lo = 1
	hi = nr
	while (lo < hi) {
		mid = int((lo + hi + 1) / 2)
		if (addr[mid] <= pc)
			lo = mid
		else
			hi = mid - 1
	}
	return known[pc] = name[lo]
}

# The same operation in another measurement is another one: pairs are made with
# several logs.
function keep(   s) {
	if (op != last_op)
		order[++nr_ops] = op
	last_op = op
	op = nr_ops
	totals[op] = total
	lines[op] = ""
	for (s = 1; s <= nr_seen; s++)
		lines[op] = lines[op] sprintf("%6d  %s\n", count[seen[s]], seen[s])
}

FILENAME == ARGV[1] {
	addr[++nr] = $1
	name[nr] = $3
	if ($4 ~ /^\[bench_/ && $3 ~ /^(pair|do_[a-z_]*)$/)
		is_op[$1] = $3
	if ($4 ~ /^\[bench_/ && $3 ~ /^(measure_pairs|bench_cost)$/)
		begins[$1]
	next
}

match($0, /\[[0-9a-f]+\/[0-9a-f]+\//) {
	split(substr($0, RSTART + 1), part, "/")
	pc = part[2]
	s = symbol(pc)
	if (op && s == "ticks_of") {
		keep()
		op = ""
	}
	if (pc in begins)
		last_op = ""
	if (!op && pc in is_op) {
		op = is_op[pc]
		total = nr_seen = 0
		delete count
	}
	if (!op)
		next
	if (!(s in count))
		seen[++nr_seen] = s
	count[s]++
	total++
}

END {
	for (i = 1; i <= nr_ops; i++)
		printf "%s: %d\n%s\n", order[i], totals[i], lines[i]
}
