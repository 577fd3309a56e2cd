//! Opens what a node has stored, and sees whether its parts belong together.

use std::io;
use std::sync::Arc;

use super::super::data_dir::DataDir;
use super::super::error::StartError;
use super::super::failure::FirstFailure;
use super::super::log_store::LogStore;
use super::super::snapshot::SnapshotStore;
use super::config::Storage;
use crate::runtime::Rt;

pub(super) async fn open_storage<R: Rt>(
    storage: &Storage,
    failure: &FirstFailure,
) -> Result<(LogStore, Arc<SnapshotStore>), StartError> {
    let Storage::Directory(dir) = storage else {
        return Ok((LogStore::in_memory(), Arc::new(SnapshotStore::in_memory())));
    };
    let (log, snapshots) = open_directory::<R>(dir, failure).await?;
    let lost = match (log.vote(), log.purged(), snapshots.current()) {
        (None, _, current) if dir.is_member() || current.is_some() => {
            Some(StartError::LogLost { dir: dir.log() })
        }
        (_, Some(purged), current) => {
            let covered = current.and_then(|snapshot| snapshot.meta.last_log_id);
            (covered < Some(purged)).then(|| StartError::SnapshotLost {
                dir: dir.log(),
                purged: purged.index,
            })
        }
        _ => None,
    };
    match lost {
        Some(error) => {
            // Lets the log's thread end, and its files go, before the error is shown.
            let _ = log.close().await;
            Err(error)
        }
        None => Ok((log, snapshots)),
    }
}

async fn open_directory<R: Rt>(
    dir: &DataDir,
    failure: &FirstFailure,
) -> Result<(LogStore, Arc<SnapshotStore>), StartError> {
    let member = dir.clone();
    let mark_member = Arc::new(move || member.mark_member().map_err(io::Error::other));
    #[cfg(any(test, feature = "test-util"))]
    if let Some(disk) = dir.simulated_disk() {
        let log = LogStore::simulated::<R>(dir.node(), disk, mark_member, failure.clone());
        return Ok((log, disk.snapshots()));
    }
    let folder = dir.snapshots();
    let opened = R::run_blocking(move || SnapshotStore::in_folder(folder)).await;
    let snapshots = opened.map_err(|source| StartError::Thread { source })??;
    let log = LogStore::on_disk(dir.log(), mark_member, failure.clone()).await?;
    Ok((log, Arc::new(snapshots)))
}
