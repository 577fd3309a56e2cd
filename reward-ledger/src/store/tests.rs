use super::rows::{Overlay, Row, Rows, Writes};
use super::{MemoryStore, conformance};
use crate::error::{ClaimError, StorageFailure, StoreError};
use crate::event_id::RewardEventId;
use crate::ledger::Ledger;
use crate::types::Claim;

#[tokio::test]
async fn the_memory_store_passes_the_suite() {
    conformance::check(async |protections| Ledger::builder(MemoryStore::with_protections(protections))).await;
}

#[cfg(feature = "sled")]
#[tokio::test]
async fn the_sled_store_passes_the_suite() {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::{SledConfig, SledStore};
    use crate::core::Protections;

    let root = tempfile::tempdir().unwrap();
    let opened = AtomicU32::new(0);
    let open = async |protections: Protections| {
        let dir = root
            .path()
            .join(opened.fetch_add(1, Ordering::Relaxed).to_string());
        let config = SledConfig::builder(dir).protections(protections).build().unwrap();
        Ledger::builder(SledStore::open_with(config).unwrap())
    };
    conformance::check(open).await;
}

#[tokio::test]
async fn a_full_memory_store_refuses_and_applies_nothing() {
    let ledger = Ledger::builder(MemoryStore::new().rows_max(20))
        .allow_unfenced()
        .open();
    let claim = |event: &str| {
        Claim::unfenced_builder(1, RewardEventId::parse(event).unwrap(), 1)
            .build()
            .unwrap()
    };
    for event in ["a", "b"] {
        assert!(ledger.claim(claim(event)).await.unwrap().is_accepted());
    }
    let full = ledger.claim(claim("c")).await.unwrap_err();
    assert!(
        matches!(full, ClaimError::Store(StoreError::Full { rows_max: 20 })),
        "{full:?}"
    );
    assert!(!full.may_have_applied());
    let report = ledger.audit().await.unwrap();
    assert_eq!(report.claims, 2);
    assert!(report.is_clean());
}

/// Plain rows under an overlay.
struct Base(Vec<Row>);

impl Rows for Base {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StorageFailure> {
        Ok(self.0.iter().find(|row| row.0 == key).map(|row| row.1.clone()))
    }

    fn scan(&self, prefix: &[u8], after: Option<&[u8]>, rows_max: usize) -> Result<Vec<Row>, StorageFailure> {
        let rows = self.0.iter().filter(|(key, _)| key.starts_with(prefix));
        Ok(rows
            .filter(|(key, _)| after.is_none_or(|after| key.as_slice() > after))
            .take(rows_max)
            .cloned()
            .collect())
    }
}

/// An overlay scans as the rows will read once its writes are applied, wherever writes, removals and pages fall.
#[test]
fn an_overlay_reads_as_the_rows_will() {
    let row = |key: u8, value: u8| (vec![b'x', key], vec![value]);
    let base = Base((0..8).map(|key| row(key * 2, key)).collect());
    let mut overlay = Overlay::new(&base);
    for key in [0, 4, 6, 14] {
        overlay.remove(vec![b'x', key]);
    }
    overlay.put(vec![b'x', 3], vec![33]);
    overlay.put(vec![b'x', 4], vec![44]);
    overlay.put(vec![b'x', 8], vec![88]);
    overlay.put(b"y".to_vec(), vec![99]);

    let expected = vec![
        row(2, 1),
        row(3, 33),
        row(4, 44),
        row(8, 88),
        row(10, 5),
        row(12, 6),
    ];
    for page in 1..8 {
        let mut read = Vec::new();
        loop {
            let after = read.last().map(|row: &Row| row.0.clone());
            let rows = overlay.scan(b"x", after.as_deref(), page).unwrap();
            assert!(rows.len() <= page);
            if rows.is_empty() {
                break;
            }
            read.extend(rows);
        }
        assert_eq!(read, expected, "pages of {page}");
    }
    assert_eq!(overlay.get(b"x\x06").unwrap(), None);
    assert_eq!(overlay.get(b"x\x08").unwrap(), Some(vec![88]));
    assert_eq!(overlay.get(b"x\x02").unwrap(), Some(vec![1]));
    let writes: Writes = overlay.into_writes();
    assert_eq!(writes.len(), 7);
}
