#!/bin/sh
test_description='Nextflow: processes as jobs'
. "$(dirname "$0")/lib.sh"

# From Maven Central, once.
jars=$(dirname "$GPUQ_CLIENTS")/nextflow-$(sha256sum <"$test_source/tests/clients/nextflow-pom.xml" | cut -c1-16)
if ! command -v java >/dev/null || ! command -v mvn >/dev/null; then
	skip_all='no java, or no mvn'
elif ! [ -e "$jars/complete" ]; then
	rm -rf "$jars" && mkdir -p "$jars" &&
		timeout 400 mvn -q -B -f "$test_source/tests/clients/nextflow-pom.xml" dependency:copy-dependencies "-DoutputDirectory=$jars" >/dev/null 2>&1 &&
		touch "$jars/complete" || skip_all='Nextflow could not be had from Maven Central'
fi
[ -z "${skip_all:-}" ] || test_done

test_expect_success 'start' 'start_clients'

test_expect_success 'three processes and what gathers their files' '
	cat >main.nf <<-\END && cat >nextflow.config <<-\END2 &&
	process square {
	  input: val x
	  output: path "out.txt"
	  script: "echo \$(( $x * $x )) >out.txt"
	}
	workflow {
	  square(Channel.of(1, 2, 3)) | collectFile(name: "all.txt", sort: { it.text.toInteger() }, storeDir: ".")
	}
	END
	process { executor = "slurm"; queue = "default"; time = "5m"; memory = "100 MB"; cpus = 1; clusterOptions = "--account=default" }
	executor { pollInterval = "1 sec"; queueStatInterval = "1 sec" }
	END2
	NXF_HOME=$PWD/nxf NXF_OFFLINE=true timeout 180 java --add-opens=java.base/java.lang=ALL-UNNAMED --add-opens=java.base/java.io=ALL-UNNAMED \
		--add-opens=java.base/java.nio=ALL-UNNAMED --add-opens=java.base/java.net=ALL-UNNAMED --add-opens=java.base/java.util=ALL-UNNAMED \
		--add-opens=java.base/java.util.concurrent.locks=ALL-UNNAMED --add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED \
		--add-opens=java.base/sun.nio.ch=ALL-UNNAMED --add-opens=java.base/sun.nio.fs=ALL-UNNAMED \
		-cp "$jars/*" nextflow.cli.Launcher run main.nf -ansi-log false &&
	test "$(tr "\n" " " <all.txt)" = "1 4 9 " && test "$(sacct -n -X -o State | sort | uniq -c | tr -s " ")" = " 3 COMPLETED "
'

test_done
