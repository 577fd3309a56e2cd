use super::counter::{add, in_dir, lead};

#[tokio::test]
async fn a_restart_keeps_what_was_applied() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _) = in_dir(dir.path()).await;
    let leading = lead(&node).await;
    for number in 1..=10 {
        add(&node, &leading, 1_000 + number, number).await.unwrap();
    }
    node.shutdown().await.unwrap();
    drop(node);

    let (node, counter) = in_dir(dir.path()).await;
    let again = lead(&node).await;
    assert!(again.id > leading.id, "a leadership was resumed");
    let count = counter.count();
    assert_eq!((count.sum, count.entries), (55, 10));
    assert_eq!(again.anchor.unwrap().stamp.as_millis(), 1_010);
    assert_eq!(add(&node, &again, 2_000, 1).await.unwrap(), 56);
    node.shutdown().await.unwrap();
}
