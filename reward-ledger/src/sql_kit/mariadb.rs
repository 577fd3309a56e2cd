//! On a MariaDB server of the tests' own (Debian: the package `mariadb-server`), through its command line client.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const KIT: &str = include_str!("../../sql/mariadb.sql");
/// Runs the server until the standard input ends, also because whoever holds it was killed; then nothing is left.
const KEEPER: &str = "dir=$1; shift; \"$@\" >\"$dir/log\" 2>&1 & server=$!; read -r _; kill -KILL $server; wait $server; rm -rf \"$dir\"";

struct Server {
    dir: PathBuf,
    /// Its standard input is the leash.
    keeper: Child,
}

impl Server {
    fn start() -> Self {
        let dir = tempfile::Builder::new()
            .prefix("ledger-mariadb-")
            .tempdir()
            .unwrap()
            .keep();
        fs::create_dir(dir.join("data")).unwrap();
        let made = Command::new("mariadb-install-db")
            .args([
                "--no-defaults",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ])
            .arg(format!("--datadir={}", dir.join("data").display()))
            .output()
            .expect("MariaDB's server is not installed; on Debian: apt-get install mariadb-server");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let keeper = Command::new("sh")
            .args(["-c", KEEPER, "sh"])
            .arg(&dir)
            .args(["mariadbd", "--no-defaults", "--user=root", "--skip-networking"])
            .arg(format!("--datadir={}", dir.join("data").display()))
            .arg(format!("--socket={}", dir.join("socket").display()))
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        Self { dir, keeper }
    }

    fn session(&self) -> Session {
        Session::open(&self.dir)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _gone = self.keeper.wait();
    }
}

/// A session of the command line client.
struct Session {
    client: Child,
    into: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Session {
    /// Waits until the server answers: the client is asked again until it does.
    fn open(dir: &Path) -> Self {
        loop {
            let mut client = Command::new("sh")
                .arg("-c")
                .arg("exec mariadb --no-defaults --socket=\"$0\" -u root -N -B -f -n 2>&1")
                .arg(dir.join("socket"))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let (into, from) = (client.stdin.take().unwrap(), client.stdout.take().unwrap());
            let mut session = Self {
                client,
                into,
                from: BufReader::new(from),
            };
            if session.ask("SELECT 1").is_some_and(|lines| lines == ["1"]) {
                return session;
            }
            let log = fs::read_to_string(dir.join("log")).unwrap_or_default();
            assert!(!log.contains("Aborting"), "{log}");
        }
    }

    fn send(&mut self, text: &str) -> Option<()> {
        // A script ends with its own delimiter.
        let end = if text.ends_with('\n') { "" } else { ";\n" };
        let text = format!("{text}{end}SELECT '@done';\n");
        self.into
            .write_all(text.as_bytes())
            .and_then(|()| self.into.flush())
            .ok()
    }

    fn answer(&mut self) -> Option<Vec<String>> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if self.from.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end() {
                "@done" => return Some(lines),
                line => lines.push(line.to_owned()),
            }
        }
    }

    fn ask(&mut self, text: &str) -> Option<Vec<String>> {
        self.send(text)?;
        self.answer()
    }

    fn run(&mut self, text: &str) -> Vec<String> {
        self.ask(text).expect("the server answers")
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _gone = self.client.kill();
        let _gone = self.client.wait();
    }
}

#[test]
fn mariadb_refuses_stale_tokens_issues_rising_ones_and_judges_event_ids_as_the_library() {
    let server = Server::start();
    let (mut a, mut b) = (server.session(), server.session());
    a.run("CREATE DATABASE game; USE game");
    b.run("USE game");
    assert_eq!(a.run(KIT), [""; 0], "the kit loads without a word");
    let stale = |lines: Vec<String>| assert!(lines.iter().any(|line| line.contains("(45001)")), "{lines:?}");

    assert_eq!(
        a.run("CALL fence_advance('lock', 101); CALL fence_advance('lock', 101)"),
        [""; 0]
    );
    assert_eq!(b.run("CALL fence_advance('lock', 102)"), [""; 0]);
    stale(a.run("CALL fence_advance('lock', 101)"));
    let refused = a.run("CALL fence_advance('lock', 0)");
    assert!(refused.iter().any(|line| line.contains("(45002)")), "{refused:?}");

    // A writes under 103 and has not committed; B's 104 waits for it. A stale transaction changes nothing.
    a.run("START TRANSACTION; CALL fence_advance('lock', 103)");
    b.send("CALL fence_advance('lock', 104)").unwrap();
    // The server looks at its transactions anew only if nobody asked for 100 ms.
    let waits =
        "DO SLEEP(0.2); SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'";
    let waited = (0..300).any(|_| a.run(waits) == ["1"]);
    assert!(waited, "B waits for the commit");
    a.run("COMMIT");
    assert_eq!(b.answer().unwrap(), [""; 0]);
    stale(a.run("CALL fence_advance('lock', 103)"));
    assert_eq!(a.run("SELECT token FROM fence WHERE resource = 'lock'"), ["104"]);

    for token in 1..=3 {
        let next = if token % 2 == 0 { &mut a } else { &mut b };
        assert_eq!(
            next.run("CALL fence_next('issued', @t); SELECT @t"),
            [token.to_string()]
        );
    }
    for (id, random) in super::event_ids() {
        let told = a.run(&format!("SELECT event_id_looks_random('{id}')"));
        assert_eq!(told, [u8::from(random).to_string()], "{id}");
    }
}
