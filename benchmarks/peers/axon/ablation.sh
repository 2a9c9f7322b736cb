#!/bin/bash
# Takes apart why one of Axon's buses is faster than the other: rows that differ by one switch each, as a Markdown table.
# After `mvn -q -B process-classes`, in this folder; about three minutes on a quiet machine. Needs jq.
set -u
heap="-Xms4g -Xmx4g"
parallel="$heap -XX:+UseParallelGC"
warm_up=4

# One row: bus, label, options of Java.
row() {
    local bus=$1 label=$2 printed
    shift 2
    # shellcheck disable=SC2068 # options without blanks
    printed=$(java $@ -cp "target/classes:target/lib/*" gapless.Main "$bus" 1 0 "$warm_up" 1 4096) || printed='{}'
    jq -r --arg label "$label" --arg bus "$bus" --arg warm_up "$warm_up" --arg options "$*" \
        '"| \($label) | \($bus) | \($warm_up) | \(.counted * 1e9 / .elapsed_ns | round) | \(.cpu_ns / .counted | round) | \(.collected_ns * 100 / .elapsed_ns | round) % | \(.wrong) | `\($options)` |"' \
        <<<"$printed"
}

both() {
    row simple "$@"
    row disruptor "$@"
}

echo "| differs | bus | warm-up, s | commands/s | CPU ns | collections | wrong | options |"
echo "|---|---|---|---|---|---|---|---|"

# From an application as one would write it to the load of Axon's own benchmark, one switch after the other.
random="-Didentifiers=random"
written="$random -Dhandler=annotated"
both "all events kept, annotated handler, headers, answers, random identifiers" $parallel $written -Dstore=all
both "the same, 12 GB of heap" -Xms12g -Xmx12g -XX:+UseParallelGC $written -Dstore=all
both "the last event of an aggregate kept" $parallel $written
both "and no answer awaited" $parallel $written -Danswers=none
published="-Danswers=none -Dmetadata=none"
both "and no headers" $parallel $written $published
both "and a plain handler: the published load" $parallel $random $published
both "and random identifiers of each thread" $parallel -Didentifiers=random-by-thread $published
both "and time-ordered identifiers" $parallel -Didentifiers=time-ordered $published
both "and no identifiers" $parallel -Didentifiers=position $published

# The fastest setting with headers and checked answers, and what else was tried.
position="-Didentifiers=position"
both "plain handler, headers, answers, no identifiers" $parallel $position
row disruptor "the same, results told by a pool" $parallel $position -Dexecutor=pool
row disruptor "the same, blocking wait strategy" $parallel $position -Dwait=blocking
row disruptor "the same, G1" $heap -XX:+UseG1GC $position
warm_up=12
row disruptor "the same, a longer warm-up" $parallel $position
row disruptor "the same, time-ordered, a longer warm-up" $parallel -Didentifiers=time-ordered
