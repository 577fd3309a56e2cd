# The doors of this repository. Everything they do is in scripts/, which CI calls too.

.PHONY: verify fix test quick bench advisories

verify:      ## Check format, lints, features, documentation, dependencies. Writes nothing.
	scripts/verify

fix:         ## Rewrite format and lints.
	scripts/fix

test:        ## Everything: verify, all tests, the examples.
	scripts/test

quick:       ## Format, lints, tests.
	scripts/test --quick

bench:       ## Every benchmark; docs/benchmarks.md explains the figures.
	cargo bench -p benches

advisories:  ## Ask the advisory database about the dependency tree. Needs the network.
	scripts/deny check advisories
