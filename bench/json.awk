# Lines `KERNEL NAME VALUE` as JSON. A figure measured several times is a list.

function text(s) {
	return s ~ /^-?[0-9]+$/ ? s : "\"" s "\""
}

{
	if (!($1 in seen)) {
		seen[$1] = 1
		kernels[++nr_kernels] = $1
	}
	if (!(($1, $2) in value))
		names[$1, ++nr_names[$1]] = $2
	else
		list[$1, $2] = 1
	value[$1, $2] = value[$1, $2] (($1, $2) in list ? ", " : "") text($3)
}

END {
	printf "{\n  \"date\": \"%s\",\n  \"kernels\": {\n", date
	for (i = 1; i <= nr_kernels; i++) {
		k = kernels[i]
		printf "    \"%s\": {\n", k
		for (j = 1; j <= nr_names[k]; j++) {
			n = names[k, j]
			v = value[k, n]
			if ((k, n) in list)
				v = "[" v "]"
			printf "      \"%s\": %s%s\n", n, v, j < nr_names[k] ? "," : ""
		}
		printf "    }%s\n", i < nr_kernels ? "," : ""
	}
	print "  }\n}"
}
