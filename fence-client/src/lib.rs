//! Client of lease-store: acquire, renew by watchdog, learn of a loss in time, release.
