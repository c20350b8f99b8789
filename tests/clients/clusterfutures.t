#!/bin/sh
test_description='clusterfutures: futures and a map'
. "$(dirname "$0")/lib.sh"

test_expect_success 'start' 'start_clients'

test_expect_success 'futures have their results and errors' '
	cat >futures.py <<-\END &&
	import cfut
	def square(x):
	    if x < 0:
	        raise ValueError("negative")
	    return x * x
	if __name__ == "__main__":
	    with cfut.SlurmExecutor(False) as ex:
	        assert ex.submit(square, 12).result(timeout=60) == 144
	        assert list(ex.map(square, [1, 2, 3])) == [1, 4, 9]
	        e = ex.submit(square, -1).exception(timeout=60)
	        assert e is not None and "negative" in str(e), e
	END
	timeout 200 "$client" futures.py
'

test_done
