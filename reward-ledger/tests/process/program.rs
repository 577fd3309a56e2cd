//! The program as a process: run to its end, or served and asked.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// For what is soon done, on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// How a process ended.
#[derive(Debug)]
pub(crate) struct Exit {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The program with these words after `--store`'s.
pub(crate) fn program(store: &str, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reward-ledger"));
    // What the person who runs the tests has set for a ledger of theirs is not meant for these.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("REWARD_LEDGER_") {
            command.env_remove(name);
        }
    }
    command.args(words).args(["--store", store]).stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub(crate) fn run(store: &str, words: &[&str]) -> Exit {
    let output = program(store, words).output().unwrap();
    Exit {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A service. It is killed when this is dropped.
pub(crate) struct Serving {
    child: Child,
    /// Shared with the threads that ask it.
    lines: Mutex<Receiver<String>>,
    /// Host and port that its ready line named.
    pub(crate) address: String,
}

impl Serving {
    /// Starts it on a free port and waits for its ready line.
    pub(crate) fn start(store: &str) -> Self {
        Self::start_with(store, &[])
    }

    /// As [`Serving::start`], with these words besides.
    pub(crate) fn start_with(store: &str, words: &[&str]) -> Self {
        Self::spawn(program(
            store,
            &[&["serve", "--listen", "127.0.0.1:0"], words].concat(),
        ))
    }

    /// Runs a command that serves, and waits for its ready line.
    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let (into, lines) = channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            while matches!(stdout.read_line(&mut line), Ok(1..)) {
                if into.send(std::mem::take(&mut line)).is_err() {
                    return;
                }
            }
        });
        let mut serving = Self {
            child,
            lines: Mutex::new(lines),
            address: String::new(),
        };
        let ready = serving.lines.lock().unwrap().recv_timeout(SOON).unwrap();
        let address = ready.strip_prefix("ready http=http://").unwrap();
        serving.address = address.trim_end().to_owned();
        serving
    }

    /// A connection to it.
    pub(crate) fn connect(&self) -> TcpStream {
        let socket = TcpStream::connect(&self.address).unwrap();
        socket.set_read_timeout(Some(SOON)).unwrap();
        socket
    }

    /// Posts JSON; status and body of the answer.
    pub(crate) fn post(&self, path: &str, body: &str) -> (u16, String) {
        self.ask("POST", path, "", body).unwrap()
    }

    /// Status and body of the answer.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        self.ask("GET", path, "", "").unwrap()
    }

    /// Sends a request with these header lines besides; status and body of the answer, or that there was none.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> std::io::Result<(u16, String)> {
        let mut socket = TcpStream::connect(&self.address)?;
        socket.set_read_timeout(Some(SOON))?;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             {headers}content-length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        socket.write_all(format!("{head}{body}").as_bytes())?;
        read_answer(&mut socket)
    }

    /// Tells it to stop. It may still have work to end.
    pub(crate) fn tell_to_stop(&self) {
        // It is our child and was not waited for, so the id is still its own.
        let process = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(process, Signal::TERM).unwrap();
    }

    /// Tells it to stop, and gives its exit code. It has said nothing more than that it was ready.
    pub(crate) fn stop(self) -> Option<i32> {
        self.tell_to_stop();
        self.wait()
    }

    /// Waits for its end, and gives its exit code.
    pub(crate) fn wait(mut self) -> Option<i32> {
        let said = self.lines.lock().unwrap().recv_timeout(SOON);
        assert_eq!(said, Err(RecvTimeoutError::Disconnected), "it ends, and silently");
        self.child.wait().unwrap().code()
    }
}

/// Status and body of an answer that ends with its connection.
pub(crate) fn read_answer(socket: &mut impl Read) -> std::io::Result<(u16, String)> {
    let mut answer = String::new();
    socket.read_to_string(&mut answer)?;
    let gone = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(gone)?;
    let status = head.strip_prefix("HTTP/1.1 ").ok_or_else(gone)?;
    Ok((status[..3].parse().unwrap(), body.to_owned()))
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Already gone: nothing is sent to anybody, the standard library knows that it has waited.
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}
