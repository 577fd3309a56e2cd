//! Benchmarks of lease-store, fence-client and reward-ledger.
