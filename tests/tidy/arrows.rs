//! Which package may depend on which, and what stays out of the pure core's tree.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::finding::{Finding, expect_none};
use crate::workspace::{Dependency, METADATA, PRODUCTS, Package, must_read};

/// An arrow between two products, and the only feature that may draw it.
const ARROWS: [(&str, &str, Option<&str>); 5] = [
    ("lease-store", "lease-core", None),
    ("fence-client", "lease-core", None),
    ("reward-ledger", "lease-core", None),
    ("fence-client", "lease-store", Some("embedded")),
    ("reward-ledger", "fence-client", Some("lease-guard")),
];

/// Everything below lease-core, build-time crates included: each was looked at and does no I/O.
const BELOW_THE_CORE: [&str; 15] = [
    "bincode",
    "bytes",
    "foldhash",
    "hashbrown",
    "proc-macro2",
    "quote",
    "serde",
    "serde_core",
    "serde_derive",
    "syn",
    "thiserror",
    "thiserror-impl",
    "twox-hash",
    "unicode-ident",
    "unty",
];

#[derive(Debug, Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Debug, Deserialize)]
struct Locked {
    name: String,
    version: String,
    #[serde(default)]
    dependencies: Vec<String>,
}

fn forbidden_arrows(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages
        .iter()
        .filter(|package| PRODUCTS.contains(&package.name.as_str()))
    {
        for dependency in &package.dependencies {
            if !PRODUCTS.contains(&dependency.name.as_str()) {
                continue;
            }
            let arrow = ARROWS
                .iter()
                .find(|(from, to, _)| *from == package.name && *to == dependency.name);
            let wrong = match arrow {
                None => Some("is no arrow of ours".to_owned()),
                Some((_, _, None)) => None,
                // Tests of the feature need it in every build of the tests; no user gets it.
                Some(_) if dependency.kind.as_deref() == Some("dev") => None,
                Some((_, _, Some(feature))) => drawn_by_others(package, dependency, feature),
            };
            if let Some(wrong) = wrong {
                let kind = dependency.kind.as_deref().unwrap_or("normal");
                let what = format!("{} -> {} ({kind}) {wrong}", package.name, dependency.name);
                findings.push(Finding::new(&package.manifest(), 0, what));
            }
        }
    }
    findings
}

/// What is wrong if anything but `feature` brings `dependency` in.
fn drawn_by_others(package: &Package, dependency: &Dependency, feature: &str) -> Option<String> {
    if !dependency.optional {
        return Some(format!("must be optional, behind the feature {feature}"));
    }
    let brings = |enabled: &String| enabled.trim_start_matches("dep:") == dependency.name;
    let enables = |enabled: &String| brings(enabled) || enabled == feature;
    let others = package
        .features
        .iter()
        .filter(|(name, enabled)| match *name == feature {
            true => !enabled.iter().any(brings),
            false => enabled.iter().any(enables),
        });
    let others: Vec<&str> = others.map(|(name, _)| name.as_str()).collect();
    (!others.is_empty()).then(|| format!("must come by the feature {feature} alone; look at {others:?}"))
}

/// Every crate that `package` can bring in, by the lock file: an upper bound over all platforms and features.
fn closure(package: &Package, lock: &Lock) -> BTreeSet<String> {
    let mut by_name: BTreeMap<&str, Vec<&Locked>> = BTreeMap::new();
    for locked in &lock.package {
        by_name.entry(&locked.name).or_default().push(locked);
    }
    let direct = package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind.as_deref() != Some("dev"));
    let mut open: Vec<String> = direct.map(|dependency| dependency.name.clone()).collect();
    let mut seen = BTreeSet::new();
    while let Some(wanted) = open.pop() {
        // "name", or "name version" where the lock holds several.
        let (name, version) = wanted.split_once(' ').unwrap_or((&wanted, ""));
        let versions = by_name.get(name).into_iter().flatten();
        for locked in versions.filter(|locked| version.is_empty() || locked.version == version) {
            if seen.insert(format!("{} {}", locked.name, locked.version)) {
                open.extend(locked.dependencies.iter().cloned());
            }
        }
    }
    seen.iter()
        .filter_map(|entry| entry.split(' ').next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn products_depend_on_each_other_only_along_the_arrows() {
    expect_none(
        forbidden_arrows(&METADATA.packages),
        "ARCHITECTURE.md draws the arrows; what needs two products belongs in tests/, benches/ or examples/.",
    );
}

#[test]
fn only_products_are_published() {
    let published = METADATA
        .packages
        .iter()
        .filter(|package| package.publish.is_none());
    let others = published.filter(|package| !PRODUCTS.contains(&package.name.as_str()));
    let findings = others
        .map(|package| Finding::new(&package.manifest(), 0, "is published"))
        .collect();
    expect_none(findings, "Say `publish = false`.");
}

#[test]
fn nothing_below_the_core_does_input_or_output() {
    let core = METADATA
        .packages
        .iter()
        .find(|package| package.name == "lease-core");
    let core = core.unwrap_or_else(|| panic!("the workspace has no lease-core"));
    let lock: Lock =
        toml::from_str(&must_read("Cargo.lock")).unwrap_or_else(|error| panic!("Cargo.lock: {error}"));
    let below = closure(core, &lock);
    assert!(
        below.contains("serde"),
        "the lock file was not understood: {below:?}"
    );
    let new = below
        .iter()
        .filter(|name| !BELOW_THE_CORE.contains(&name.as_str()));
    let findings = new
        .map(|name| Finding::new("lease-core/Cargo.toml", 0, format!("brings in {name}")))
        .collect();
    expect_none(
        findings,
        "lease-core is pure. If this crate is too, add it to BELOW_THE_CORE; else do without it.",
    );
}

#[cfg(test)]
mod samples {
    use super::*;

    /// `dependency` ends with `?` if it is optional.
    fn package(name: &str, dependency: &str, features: &str) -> Package {
        let optional = dependency.ends_with('?');
        let dependency = dependency.trim_end_matches('?');
        let text = format!(
            r#"{{"id": "1", "name": "{name}", "manifest_path": "{name}/Cargo.toml", "targets": [], "publish": null,
                "dependencies": [{{"name": "{dependency}", "kind": null, "optional": {optional}}}],
                "features": {features}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn an_arrow_against_the_drawing_is_caught() {
        let wrong = |package| !forbidden_arrows(&[package]).is_empty();
        assert!(wrong(package("lease-core", "lease-store", "{}")));
        assert!(wrong(package("reward-ledger", "lease-store?", "{}")));
        assert!(wrong(package("fence-client", "lease-store", "{}")));
        let by_default = r#"{"default": ["embedded"], "embedded": ["dep:lease-store"]}"#;
        assert!(wrong(package("fence-client", "lease-store?", by_default)));
        let by_another = r#"{"embedded": ["dep:lease-store"], "fast": ["dep:lease-store"]}"#;
        assert!(wrong(package("fence-client", "lease-store?", by_another)));
        let embedded = r#"{"default": [], "embedded": ["dep:lease-store"]}"#;
        assert!(!wrong(package("fence-client", "lease-store?", embedded)));
        assert!(!wrong(package("lease-store", "lease-core", "{}")));
        let mut for_tests = package("fence-client", "lease-store", "{}");
        for_tests.dependencies.first_mut().unwrap().kind = Some("dev".to_owned());
        assert!(!wrong(for_tests));
    }

    #[test]
    fn the_closure_goes_down_to_the_bottom_and_keeps_versions_apart() {
        let lock: Lock = toml::from_str(
            r#"
            [[package]]
            name = "a"
            version = "1.0.0"
            dependencies = ["b 2.0.0"]
            [[package]]
            name = "b"
            version = "1.0.0"
            dependencies = ["socket"]
            [[package]]
            name = "b"
            version = "2.0.0"
            dependencies = ["c"]
            [[package]]
            name = "c"
            version = "1.0.0"
            [[package]]
            name = "socket"
            version = "1.0.0"
            "#,
        )
        .unwrap();
        let below = closure(&package("lease-core", "a", "{}"), &lock);
        assert_eq!(
            below.iter().map(String::as_str).collect::<Vec<_>>(),
            ["a", "b", "c"]
        );
    }
}
