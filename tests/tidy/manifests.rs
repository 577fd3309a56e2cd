//! What each manifest must say.

use toml::Table;

use crate::finding::{Finding, expect_none};
use crate::workspace::{METADATA, PRODUCTS, Package, must_read};

fn table(text: &str) -> Table {
    text.parse().unwrap_or_else(|error| panic!("not TOML: {error}"))
}

fn takes_workspace_lints(manifest: &Table) -> bool {
    let lints = manifest.get("lints").and_then(|lints| lints.get("workspace"));
    lints.and_then(toml::Value::as_bool) == Some(true)
}

/// Dependencies that state a version of their own instead of `workspace = true`.
fn own_versions(manifest: &Table) -> Vec<String> {
    let mut tables: Vec<&Table> = Vec::new();
    let mut holders = vec![manifest];
    let platforms = manifest.get("target").and_then(toml::Value::as_table);
    holders.extend(
        platforms
            .into_iter()
            .flat_map(Table::values)
            .filter_map(toml::Value::as_table),
    );
    for holder in holders {
        let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
        tables.extend(
            kinds
                .iter()
                .filter_map(|kind| holder.get(*kind))
                .filter_map(toml::Value::as_table),
        );
    }
    let own = tables
        .into_iter()
        .flatten()
        .filter(|(_, wanted)| wanted.get("workspace").and_then(toml::Value::as_bool) != Some(true));
    own.map(|(name, _)| name.clone()).collect()
}

#[test]
fn every_package_takes_the_lints_of_the_workspace() {
    let all = METADATA.packages.iter().map(Package::manifest);
    let bare = all.filter(|path| !takes_workspace_lints(&table(&must_read(path))));
    let findings = bare
        .map(|path| Finding::new(&path, 0, "has its own lints, or none"))
        .collect();
    expect_none(findings, "Write `[lints]` with `workspace = true`.");
}

#[test]
fn every_dependency_takes_its_version_from_the_workspace() {
    let all = METADATA.packages.iter().map(Package::manifest);
    let own = all.flat_map(|path| {
        let names = own_versions(&table(&must_read(&path)));
        names.into_iter().map(move |name| Finding::new(&path, 0, name))
    });
    expect_none(
        own.collect(),
        "Name the version once, in [workspace.dependencies], and write `workspace = true` here.",
    );
}

#[test]
fn cargo_run_starts_the_store() {
    let is_default = |package: &Package| METADATA.workspace_default_members.contains(&package.id);
    let binaries = METADATA.targets("bin").filter(|(package, _)| is_default(package));
    let binaries: Vec<&str> = binaries.map(|(_, target)| target.name.as_str()).collect();
    assert_eq!(
        binaries,
        ["lease-store"],
        "default-members must hold one binary, or `cargo run` does not know what to start: what examples/ has are `[[example]]` targets"
    );
}

#[test]
fn every_feature_is_built_alone() {
    let script = must_read("scripts/verify");
    let mut findings = Vec::new();
    for package in METADATA
        .packages
        .iter()
        .filter(|package| PRODUCTS.contains(&package.name.as_str()))
    {
        let features = package.features.keys().filter(|name| *name != "default");
        let with_one = features.map(|feature| format!("{} {feature}", package.name));
        for entry in with_one.chain([package.name.clone()]) {
            if !script.contains(&format!("    \"{entry}\"\n")) {
                findings.push(Finding::new(
                    "scripts/verify",
                    0,
                    format!("ALONE has no \"{entry}\""),
                ));
            }
        }
    }
    expect_none(
        findings,
        "Add the line, so that the feature is checked without the others.",
    );
}

#[cfg(test)]
mod samples {
    use super::*;

    #[test]
    fn a_manifest_with_its_own_lints_or_versions_is_caught() {
        assert!(!takes_workspace_lints(&table("[package]\nname = \"x\"")));
        assert!(!takes_workspace_lints(&table(
            "[lints.rust]\nunsafe_code = \"allow\""
        )));
        assert!(takes_workspace_lints(&table("[lints]\nworkspace = true")));
        let own = own_versions(&table(
            "[dependencies]\na = \"1\"\nb = { workspace = true }\n[target.'cfg(unix)'.dev-dependencies]\nc = { version = \"2\" }",
        ));
        assert_eq!(own, ["a", "c"]);
    }
}
