#!/bin/sh
# Writes the golden bytes again with the official SBE generator. Needs Maven, Java 17 or later, and the network.
# Development time only: the tests read the committed *.hex files.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mvn -q -B -f "$here/pom.xml" dependency:build-classpath -Dmdep.outputFile="$work/classpath"
classpath=$(cat "$work/classpath")

for schema in car truck numbers big-endian extension-v0 extension-v2; do
    # Names that are reserved in Java get an underscore.
    java -cp "$classpath" \
        --add-opens java.base/jdk.internal.misc=ALL-UNNAMED \
        -Dsbe.output.dir="$work/generated" -Dsbe.target.language=Java -Dsbe.xinclude.aware=true \
        -Dsbe.java.generate.interfaces=false -Dsbe.keyword.append.token=_ -Dsbe.validation.stop.on.error=true \
        uk.co.real_logic.sbe.SbeTool "$here/../schemas/$schema.xml"
done
if [ "${1:-}" = generated ]; then
    cp -r "$work/generated" "$2"
fi
mkdir "$work/classes"
find "$work/generated" "$here" -name '*.java' > "$work/sources"
javac -nowarn -cp "$classpath" -d "$work/classes" "@$work/sources"
java -cp "$work/classes:$classpath" --add-opens java.base/jdk.internal.misc=ALL-UNNAMED GoldenWriter "$here"
