//! The scripts of `tests/data/scripts`: the shapes that lock libraries send, in words of our own. Keys are `a`, `b` and
//! `c`; the arguments are a token, a time, another token and a flag.

use std::path::Path;

/// Shapes of which each must be there, by how the names of the files begin.
const SHAPES: [&str; 9] = ["s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9"];

/// One script.
pub(super) struct Script {
    pub(super) name: String,
    pub(super) text: String,
}

/// All scripts, in the order of their names.
pub(super) fn scripts() -> Vec<Script> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/scripts");
    let files = std::fs::read_dir(&directory).unwrap();
    let mut scripts: Vec<Script> = files
        .map(|file| {
            let path = file.unwrap().path();
            Script {
                name: path.file_stem().unwrap().to_string_lossy().into_owned(),
                text: std::fs::read_to_string(&path).unwrap(),
            }
        })
        .collect();
    scripts.sort_by(|left, right| left.name.cmp(&right.name));
    for shape in SHAPES {
        let is_there = scripts.iter().any(|script| script.name.starts_with(shape));
        assert!(
            is_there,
            "no script of the shape {shape} in {}",
            directory.display()
        );
    }
    scripts
}
