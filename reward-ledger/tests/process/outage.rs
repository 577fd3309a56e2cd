//! A store that is down: 503, and nothing that was granted is lost.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use reward_ledger::testing::server::PostgresServer;

use crate::program::{Serving, program, run};
use crate::{LOCK, done};

/// Looks whether a service is well at the most; each takes up to a second while it is not.
const LOOKS_MAX: usize = 60;

/// A claim of its own for each number.
fn numbered(number: usize) -> String {
    format!(
        r#"{{"resource": "{LOCK}", "fence_token": "102", "player_id": "42", "amount": "500", "item": "gold",
            "reward_event_id": "season-2026-week-34:player-42:rank-{number}", "attempt_id": "message-{number}"}}"#
    )
}

/// The way to a server's socket over TCP, that can be cut.
struct Way {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    is_cut: bool,
    /// Both ends of each connection.
    open: Vec<(TcpStream, UnixStream)>,
}

impl Way {
    fn to(server: PathBuf) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for near in socket.incoming().flatten() {
                let mut state = shared.lock().unwrap();
                if !state.is_cut {
                    let far = UnixStream::connect(&server).unwrap();
                    carry(&near, &far);
                    state.open.push((near, far));
                }
            }
        });
        Self { address, state }
    }

    fn cut(&self) {
        let mut state = self.state.lock().unwrap();
        state.is_cut = true;
        for (near, far) in state.open.drain(..) {
            // One that its user has closed is gone already.
            let _gone = near.shutdown(std::net::Shutdown::Both);
            let _gone = far.shutdown(std::net::Shutdown::Both);
        }
    }

    fn mend(&self) {
        self.state.lock().unwrap().is_cut = false;
    }
}

/// Carries bytes both ways until one side ends.
fn carry(near: &TcpStream, far: &UnixStream) {
    let (mut from, mut to) = (near.try_clone().unwrap(), far.try_clone().unwrap());
    std::thread::spawn(move || {
        let _ended = io::copy(&mut from, &mut to);
        let _gone = to.shutdown(std::net::Shutdown::Both);
    });
    let (mut from, mut to) = (far.try_clone().unwrap(), near.try_clone().unwrap());
    std::thread::spawn(move || {
        let _ended = io::copy(&mut from, &mut to);
        let _gone = to.shutdown(std::net::Shutdown::Both);
    });
}

#[tokio::test]
async fn a_database_that_is_out_of_reach_gives_503_and_is_used_again_when_it_is_back() {
    let server = PostgresServer::shared().await;
    let url = server.database().await;
    let (_, database) = url.rsplit_once("dbname=").unwrap();
    let way = Way::to(server.socket_dir().join(".s.PGSQL.5432"));
    let store = format!("postgres://postgres@{}/{database}", way.address);
    let serving = Serving::start(&store);
    let (status, first) = serving.post("/v1/claims", &numbered(1));
    assert_eq!(status, 201, "{first}");

    way.cut();
    let (status, told) = serving.post("/v1/claims", &numbered(2));
    assert!(
        status == 503 && told.contains("may_have_applied"),
        "{status} {told}"
    );
    assert!(
        told.contains("urn:reward-ledger:problem:store-unavailable"),
        "{told}"
    );

    let (status, figures) = serving.get("/metrics");
    assert!(
        status == 200 && figures.contains("reward_ledger_store_answers 0"),
        "{figures}"
    );

    assert_eq!(serving.get("/healthz").0, 503);

    way.mend();
    // Nobody claims before the probe says so.
    assert!(
        (0..LOOKS_MAX).any(|_| serving.get("/healthz").0 == 200),
        "it is never well again"
    );
    let (status, second) = serving.post("/v1/claims", &numbered(2));
    assert!(matches!(status, 200 | 201), "{second}");
    assert_eq!(serving.post("/v1/claims", &numbered(1)), (200, first));
    assert_eq!(serving.post("/v1/claims", &numbered(2)), (200, second));
    assert_eq!(serving.stop(), Some(0));
    done(&run(&store, &["audit"]), "2 claims of 1 players");
}

/// The program in a shell that lets it write no file longer than `blocks` of 512 bytes.
fn with_short_files(store: &str, blocks: u64) -> Command {
    let inner = program(store, &["serve", "--listen", "127.0.0.1:0"]);
    let mut command = Command::new("sh");
    // Ignored, so that a write fails instead of ending the process.
    command.args([
        "-c",
        "trap '' XFSZ; ulimit -f $1; shift; exec \"$@\"",
        "sh",
        &blocks.to_string(),
    ]);
    command.arg(inner.get_program()).args(inner.get_args());
    command
}

fn longest_file(dir: &Path) -> u64 {
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let lengths = files.map(|entry| match entry.file_type().unwrap().is_dir() {
        true => longest_file(&entry.path()),
        false => entry.metadata().unwrap().len(),
    });
    lengths.max().unwrap_or(0)
}

/// A disk that takes no more: what cannot be kept is not granted, the service ends with an error, and what it granted
/// is there.
#[test]
fn a_disk_that_takes_no_more_gives_503_ends_the_service_and_loses_nothing() {
    const CLAIMS_MAX: usize = 20_000;
    // Sled opens its file two MiB longer than what is in it; as much again is soon full.
    const BLOCKS_MORE: u64 = 4 * 1_024 * 1_024 / 512;
    let dir = tempfile::tempdir().unwrap();
    let store = format!("sled:{}", dir.path().display());
    let serving = Serving::start(&store);
    assert_eq!(serving.post("/v1/claims", &numbered(0)).0, 201);
    assert_eq!(serving.stop(), Some(0));

    let serving = Serving::spawn(with_short_files(
        &store,
        longest_file(dir.path()) / 512 + BLOCKS_MORE,
    ));
    let mut granted = vec![0];
    let refused = (1..CLAIMS_MAX).find_map(|number| {
        let answer = serving.ask("POST", "/v1/claims", "", &numbered(number));
        match answer {
            Ok((201, _)) => {
                granted.push(number);
                None
            }
            other => Some(other),
        }
    });
    let (status, told) = refused.unwrap().unwrap();
    assert!(
        status == 503 && told.contains("may_have_applied"),
        "{status} {told}"
    );
    assert_eq!(serving.wait(), Some(1), "the first storage error is the end");

    let serving = Serving::start(&store);
    for number in granted {
        let (status, told) = serving.post("/v1/claims", &numbered(number));
        assert_eq!(status, 200, "{number}: {told}");
    }
    assert_eq!(serving.stop(), Some(0));
    done(&run(&store, &["audit"]), "no violation");
}
