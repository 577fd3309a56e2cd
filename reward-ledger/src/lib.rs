//! Ledger of rewards that refuses stale fencing tokens: unique event keys, idempotent receipts, outbox.
