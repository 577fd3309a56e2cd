//! A store that is stopped and started again on its directory.

use super::*;

async fn open(directory: &std::path::Path, floor: TokenFloor) -> LeaseStore {
    LeaseStore::start(StoreConfig::in_directory(directory).token_floor(floor))
        .await
        .unwrap()
}

#[tokio::test]
async fn a_restart_keeps_leases_requests_and_tokens() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path(), TokenFloor::At(0)).await;
    let held = granted(
        &store
            .acquire(DB, with_request("r", ask("held", "x", 60_000)))
            .await
            .unwrap(),
    );
    let gone = granted(&store.acquire(DB, ask("gone", "x", 60_000)).await.unwrap());
    store.release(DB, name("gone"), gone).await.unwrap();
    store.shutdown().await.unwrap();

    let store = open(directory.path(), TokenFloor::At(0)).await;
    let retry = store
        .acquire(DB, with_request("r", ask("held", "x", 60_000)))
        .await
        .unwrap();
    assert_eq!(granted(&retry), held);
    let again = store.release(DB, name("gone"), gone).await.unwrap();
    assert_eq!(
        again,
        ReleaseReply::Lost {
            reason: LossReason::Released
        }
    );
    let next = granted(&store.acquire(DB, ask("next", "x", 60_000)).await.unwrap());
    assert!(next > gone);
    store.shutdown().await.unwrap();
}

#[tokio::test]
async fn each_start_of_a_single_voter_issues_above_all_that_an_older_copy_can_have_issued() {
    let directory = tempfile::tempdir().unwrap();
    let copy = tempfile::tempdir().unwrap();
    open(directory.path(), TokenFloor::WallClock)
        .await
        .shutdown()
        .await
        .unwrap();
    copy_directory(directory.path(), copy.path());
    let store = open(directory.path(), TokenFloor::WallClock).await;
    let mut last = None;
    for n in 0..100 {
        last = Some(granted(
            &store
                .acquire(DB, ask(&format!("a{n}"), "x", 60_000))
                .await
                .unwrap(),
        ));
    }
    store.shutdown().await.unwrap();

    // The copy knows nothing of these grants.
    let restored = open(copy.path(), TokenFloor::WallClock).await;
    let next = granted(&restored.acquire(DB, ask("a", "x", 60_000)).await.unwrap());
    assert!(Some(next) > last, "{next} is not above {last:?}");
    restored.shutdown().await.unwrap();
}

fn copy_directory(from: &std::path::Path, to: &std::path::Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir_all(&target).unwrap();
            copy_directory(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[tokio::test]
async fn a_second_store_on_the_same_directory_is_refused_and_names_it() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path(), TokenFloor::At(0)).await;
    let refused = LeaseStore::start(StoreConfig::in_directory(directory.path()))
        .await
        .unwrap_err();
    let shown = refused.to_string();
    assert!(shown.contains(&directory.path().display().to_string()), "{shown}");
    store.shutdown().await.unwrap();
    open(directory.path(), TokenFloor::At(0))
        .await
        .shutdown()
        .await
        .unwrap();
}

#[tokio::test]
async fn dropping_the_last_handle_frees_the_directory() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(directory.path(), TokenFloor::At(0)).await);
    // The log is synced on the way, which may take long on a busy disk.
    let freed = async {
        loop {
            match LeaseStore::start(StoreConfig::in_directory(directory.path())).await {
                Ok(store) => return store,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    let store = tokio::time::timeout(Duration::from_secs(30), freed).await;
    store.expect("the directory is freed").shutdown().await.unwrap();
}
