use super::*;

#[test]
fn a_new_directory_is_made_with_those_above_it_and_opened_again() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("some/where/deep");
    let first = DataDir::open(&path, 7).unwrap();
    assert_eq!((first.node(), first.incarnation()), (7, 1));
    let cluster = first.cluster();
    drop(first);
    let second = DataDir::open(&path, 7).unwrap();
    assert_eq!((second.cluster(), second.incarnation()), (cluster, 2));
}

#[test]
fn a_second_user_is_refused_and_told_who_the_first_is() {
    let temporary = tempfile::tempdir().unwrap();
    let first = DataDir::open(temporary.path(), 7).unwrap();
    let error = DataDir::open(temporary.path(), 7).unwrap_err();
    let ours = std::process::id();
    assert!(matches!(&error, DataDirError::InUse { process: Some(process), .. } if *process == ours));
    assert!(
        error
            .to_string()
            .contains(&temporary.path().canonicalize().unwrap().display().to_string())
    );
    first.release();
    assert_eq!(DataDir::open(temporary.path(), 7).unwrap().incarnation(), 2);
}

#[test]
fn a_directory_of_something_else_is_left_as_it_is() {
    let temporary = tempfile::tempdir().unwrap();
    fs::write(temporary.path().join("holiday.jpg"), b"").unwrap();
    let error = DataDir::open(temporary.path(), 7).unwrap_err();
    assert!(matches!(error, DataDirError::NotOurs { found, .. } if found == "holiday.jpg"));
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 1);
}

#[test]
fn another_node_is_refused() {
    let temporary = tempfile::tempdir().unwrap();
    drop(DataDir::open(temporary.path(), 7).unwrap());
    let error = DataDir::open(temporary.path(), 8).unwrap_err();
    assert!(matches!(
        error,
        DataDirError::OtherNode {
            stored: 7,
            asked: 8,
            ..
        }
    ));
}

#[test]
fn another_format_is_refused() {
    let temporary = tempfile::tempdir().unwrap();
    drop(DataDir::open(temporary.path(), 7).unwrap());
    write_small(temporary.path(), IDENTITY, "format 2\nsomething new\n").unwrap();
    let error = DataDir::open(temporary.path(), 7).unwrap_err();
    assert!(matches!(error, DataDirError::OtherFormat { found: 2, .. }));
}

#[test]
fn a_damaged_small_file_is_refused() {
    for name in [IDENTITY, INCARNATION] {
        let temporary = tempfile::tempdir().unwrap();
        drop(DataDir::open(temporary.path(), 7).unwrap());
        let path = temporary.path().join(name);
        let whole = fs::read(&path).unwrap();
        for damaged in [
            &whole[..whole.len() - 1],
            &[&whole[..3], b"X", &whole[4..]].concat(),
            b"",
        ] {
            fs::write(&path, damaged).unwrap();
            let error = DataDir::open(temporary.path(), 7).unwrap_err();
            assert!(matches!(error, DataDirError::Damaged { .. }), "{error}");
        }
    }
}

#[test]
fn a_directory_with_a_part_missing_is_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = DataDir::open(temporary.path(), 7).unwrap();
    dir.mark_member().unwrap();
    dir.mark_member().unwrap();
    drop(dir);
    for name in [INCARNATION, IDENTITY] {
        let path = temporary.path().join(name);
        let away = temporary.path().join("lost+found");
        fs::rename(&path, &away).unwrap();
        assert!(matches!(
            DataDir::open(temporary.path(), 7),
            Err(DataDirError::Missing { .. })
        ));
        fs::rename(&away, &path).unwrap();
    }
    fs::remove_dir(temporary.path().join(SNAPSHOTS)).unwrap();
    assert!(matches!(
        DataDir::open(temporary.path(), 7),
        Err(DataDirError::Missing { .. })
    ));
}

#[test]
fn a_creation_that_a_crash_cut_off_is_finished() {
    let temporary = tempfile::tempdir().unwrap();
    fs::create_dir(temporary.path().join(LOG)).unwrap();
    fs::write(temporary.path().join("identity.new"), b"format 1").unwrap();
    fs::write(temporary.path().join(LOCK), b"1").unwrap();
    assert_eq!(DataDir::open(temporary.path(), 7).unwrap().incarnation(), 1);
}

#[test]
fn a_file_in_the_place_of_the_directory_is_named() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("file");
    fs::write(&path, b"").unwrap();
    let error = DataDir::open(&path, 7).unwrap_err();
    assert!(error.to_string().contains("file"), "{error}");
    assert!(DataDir::open(&path.join("below"), 7).is_err());
}
