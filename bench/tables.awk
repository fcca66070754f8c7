# The results, lines `KERNEL NAME VALUE`, as tables in Markdown. What has a
# budget has "ok" or "OVER" behind its figures.

{
	if (!($1 in seen)) {
		seen[$1] = 1
		kernel[++nr] = $1
	}
	sum[$1, $2] += $3
	times[$1, $2]++
	last[$1, $2] = $3
	if (!(($1, $2) in least) || $3 < least[$1, $2])
		least[$1, $2] = $3
	if ($3 > most[$1, $2])
		most[$1, $2] = $3
}

function has(k, name) {
	return (k, name) in sum
}

# The average, for what was measured several times.
function v(k, name) {
	return sum[k, name] / times[k, name]
}

# 1234567 -> 1,234,567
function commas(x,   s, out) {
	s = sprintf("%.0f", x)
	while (match(s, /[0-9][0-9][0-9][0-9]$/)) {
		out = "," substr(s, RSTART + 1) out
		s = substr(s, 1, RSTART)
	}
	return s out
}

function cell(k, name) {
	return has(k, name) ? commas(v(k, name)) : "-"
}

function mark(x, budget) {
	return budget == "" ? "" : x <= budget ? " ok" : " **OVER**"
}

# A table with a column for each kernel and one for the budget.
function heading(title, first,   i, line, rule) {
	printf "\n### %s\n\n", title
	line = "| " first " |"
	rule = "|---|"
	for (i = 1; i <= nr; i++) {
		line = line " " kernel[i] " |"
		rule = rule "--:|"
	}
	print line " budget |"
	print rule "--:|"
}

function row(label, name, budget,   i, line) {
	line = "| " label " |"
	for (i = 1; i <= nr; i++)
		line = line " " cell(kernel[i], name) \
			(has(kernel[i], name) ? mark(v(kernel[i], name), budget) : "") " |"
	print line " " (budget == "" ? "" : commas(budget)) " |"
}

# --- Calls ---

function calls() {
	heading("Calls, a stack of 16 frames given (instructions)", "call")
	row("look-up hit + HASH record", "records.record_whole", 500)
	row("&nbsp; is the event wanted?", "records.wants", "")
	row("&nbsp; look-up hit", "records.lookup", "")
	row("&nbsp; HASH record", "records.record", "")
	row("the same, log full: makes room", "filled.full.record_whole", "")
	row("the same address again: replaces", "records.replace_whole", "")
	row("erase", "records.erase", 200)
	row("free of an address that is not in the log", "records.erase_untracked", 60)
	row("the same, log half full", "filled.half.erase_untracked", "")
	row("the same, log full", "filled.full.erase_untracked", "")
	row("sampled-out event", "records.sampled_out", 30)
	row("look-up hit + LOG record", "records.ring_whole_again", "")
	row("`stack_depot_save()` of the same stack, nothing recorded", "records.stack_depot_save", "")
}

function captures(   i, d, depth, n) {
	n = split("8 16 30", depth)
	heading("Capture (instructions)", "frames, how")
	for (i = 1; i <= n; i++) {
		d = depth[i]
		row(d ", `stack_trace_save()`", "capture." d ".stack_trace_save", "")
		row(d ", btlog, walked", "capture." d ".capture", d == 16 ? 450 : "")
		row(d ", btlog, usual: known, with its reference", "capture." d ".get", d == 16 ? 450 : "")
	}
}

# --- Pairs and the workload ---

function added(k, name) {
	return v(k, name) - v(k, "pair.none.before")
}

function pair_cell(k, name, budget) {
	if (!has(k, name) || !has(k, "pair.none.before"))
		return "-"
	return commas(added(k, name)) mark(added(k, name), budget)
}

function pair_row(label, name, sampled, budget,   i, line) {
	line = "| " label " |"
	for (i = 1; i <= nr; i++) {
		line = line " " pair_cell(kernel[i], name (sampled ? ".1" : ""), budget) " |"
		line = line " " pair_cell(kernel[i], name ".10", "") " |"
		line = line " " pair_cell(kernel[i], name ".100", "") " |"
	}
	print line " " (budget == "" ? "" : commas(budget)) " |"
}

function pairs(   i, line, rule) {
	printf "\n### One kmalloc() + kfree(), stack of 16 frames: instructions added\n\n"
	line = "| tool |"
	rule = "|---|"
	for (i = 1; i <= nr; i++) {
		line = line " " kernel[i] ": all | 1/10 | 1/100 |"
		rule = rule "--:|--:|--:|"
	}
	print line " budget |"
	print rule "--:|"
	pair_row("probes that do nothing", "pair.empty", 0, "")
	pair_row("**btlog**, HASH", "pair.btlog", 1, 1100)
	pair_row("**btlog**, HASH, one sample per 512 KiB", "pair.btlog_always_on", 0, "")
	pair_row("**btlog**, LOG (stacks of both)", "pair.btlog_log", 0, 1700)
	pair_row("btlog, HASH, `capture=stack_trace_save`", "pair.btlog_reference", 1, "")
	pair_row("`stack_trace_save()` + stack depot, allocations only", "pair.depot", 1, "")
	pair_row("the same, of both", "pair.depot_both", 0, "")
	pair_row("BPF: stack id + hash map", "pair.bpf", 1, "")
	pair_row("ftrace hist trigger keyed by stack, allocations only", "pair.hist", 0, "")
	pair_row("boot with `slub_debug=U` (stacks of both)", "pair.slub", 0, "")
	heading("The pair itself: the hooks are really gone (instructions)", "btlog is")
	row("not loaded", "pair.none.before", "")
	row("loaded, no log enabled", "pair.none.loaded", "")
	row("disabled again", "pair.none.disabled", "")
}

# Without a base there is nothing to compare with.
function has_both(k, name, base) {
	return has(k, name) && has(k, base) && v(k, base)
}

function percent(k, name) {
	return 100 * (v(k, name) / v(k, "work.none") - 1)
}

function work_row(label, name, budget,   i, k, line) {
	line = "| " label " |"
	for (i = 1; i <= nr; i++) {
		k = kernel[i]
		if (has_both(k, name, "work.none"))
			line = line sprintf(" %+.1f %%%s |", percent(k, name),
					    mark(percent(k, name), budget))
		else
			line = line " - |"
	}
	print line " " (budget == "" ? "" : budget " %") " |"
}

function work(   i, k, line) {
	heading("A workload of processes, files and sockets: instructions added", "tool")
	work_row("probes that do nothing", "work.empty", "")
	work_row("**btlog**, HASH, every event", "work.btlog", 20)
	work_row("**btlog**, HASH, one sample per 512 KiB", "work.btlog_always_on", 1)
	work_row("**btlog**, LOG, every event", "work.btlog_log", "")
	work_row("btlog, HASH, `capture=stack_trace_save`", "work.btlog_reference", "")
	work_row("`stack_trace_save()` + stack depot, allocations only", "work.depot", "")
	work_row("the same, of both", "work.depot_both", "")
	work_row("BPF: stack id + hash map", "work.bpf", "")
	work_row("ftrace hist trigger keyed by stack, allocations only", "work.hist", "")
	work_row("boot with `slub_debug=U` (stacks of both)", "work.slub", "")
	line = "| page_owner, kmemleak |"
	for (i = 1; i <= nr; i++)
		line = line " not there |"
	print line " |"
	line = ""
	for (i = 1; i <= nr; i++) {
		k = kernel[i]
		if (!has(k, "work.none"))
			continue
		line = line sprintf("%s%s: %.2f %%", i > 1 ? ", " : "", k,
				    100 * (most[k, "work.none"] / least[k, "work.none"] - 1))
	}
	print "\nSeveral runs of the workload alone differed by at most: " line "."
	print "page_owner and kmemleak are not in Debian's kernels."
}

function estimate(   i, k, e, n) {
	print ""
	for (i = 1; i <= nr; i++) {
		k = kernel[i]
		if (!has_both(k, "estimate.samples", "estimate.exact_bytes"))
			continue
		e = v(k, "estimate.exact_bytes")
		n = v(k, "estimate.samples")
		printf "Outstanding bytes on %s, sampled per 512 KiB: %s of %s estimated, %+.1f %% off with %d samples (one standard deviation is %.1f %%).\n",
			k, commas(v(k, "estimate.bytes")), commas(e),
			100 * (v(k, "estimate.bytes") / e - 1), n, 100 / sqrt(n)
	}
}

# --- Memory, reports, growth ---

# A figure that is a quotient of differences.
function put(k, name, x, x0, y, y0) {
	if (y <= y0)
		return
	sum[k, name] = (x - x0) / (y - y0)
	times[k, name] = 1
}

# What was not measured counts as nothing.
function total(k, name) {
	return has(k, name) ? v(k, name) : 0
}

function memory(   i, k) {
	for (i = 1; i <= nr; i++) {
		k = kernel[i]
		put(k, "m.btlog", total(k, "memory.btlog.bytes"),
		    total(k, "memory.btlog.empty"), total(k, "memory.btlog.stacks"),
		    total(k, "memory.btlog.empty_stacks"))
		if (has(k, "memory.depot.bytes"))
			put(k, "m.depot", v(k, "memory.depot.bytes"),
			    total(k, "memory.depot.empty"), 10000, 0)
		put(k, "m.bpf", total(k, "memory.bpf.stacks_bytes"), 0,
		    total(k, "memory.bpf.stacks"), 0)
		put(k, "m.record", total(k, "memory.btlog.log_bytes"), 0,
		    total(k, "memory.btlog.records"), 0)
		if (has(k, "memory.bpf.records_bytes"))
			put(k, "m.bpf_record", v(k, "memory.bpf.records_bytes"), 0,
			    65536, 0)
	}
	heading("Memory for 10,000 stacks of 16 frames (bytes each)", "what")
	row("btlog: a stack, its part of the table included", "m.btlog", "")
	row("btlog: kept ready for new stacks, in all", "memory.btlog.empty", "")
	row("stack depot: a stack, its table not included", "m.depot", "")
	row("BPF stack map of 16,384 slots: a stack kept", "m.bpf", "")
	row("&nbsp; stacks lost to collisions, of 10,000", "memory.bpf.stacks_lost", "")
	row("btlog: a record, buckets included", "m.record", "")
	row("BPF hash map: a record", "m.bpf_record", "")
}

function reports() {
	heading("Reports and growth (instructions)", "what")
	row("`top` of 10,000 records over 10,000 stacks", "top.10000", "")
	row("`top` of 100,000 records", "top.100000", "")
	row("`top` of 1,000,000 records", "top.1000000", 2000000000)
	row("a new stack, from 0 to 1,000,000 of them", "grow.ticks_per_stack", "")
	row("longest hold of the library's lock meanwhile", "grow.longest_hold_ns", 20000)
}

# --- Scaling ---

function ratio(k, name, one) {
	if (!has(k, name) || !has(k, one) || !v(k, one))
		return " - |"
	return sprintf(" %.2f |", v(k, name) / v(k, one))
}

function scale_row(k, label, tool,   d, c, base, line) {
	line = "| " k ", " label " |"
	for (d = 0; d <= 1; d++) {
		base = "scale." tool "." d "."
		for (c = 2; c <= 4; c += 2)
			line = line ratio(k, base c, base "1")
	}
	print line
}

function scaling(   i, k) {
	printf "\n### Throughput of pairs on several CPUs, as multiples of one (timed)\n\n"
	print "| kernel, tool | same stack: 2 | 4 | a stack each: 2 | 4 |"
	print "|---|--:|--:|--:|--:|"
	for (i = 1; i <= nr; i++) {
		k = kernel[i]
		scale_row(k, "nothing", "none")
		scale_row(k, "btlog", "btlog")
		scale_row(k, "`stack_trace_save()` + stack depot", "depot")
		scale_row(k, "BPF", "bpf")
	}
}

END {
	printf "## Cost, measured %s on", date
	for (i = 1; i <= nr; i++)
		printf("%s %s (%s)", (i > 1 ? "," : ""), kernel[i], last[kernel[i], "release"])
	print ""
	calls()
	captures()
	pairs()
	work()
	estimate()
	memory()
	reports()
	scaling()
}
