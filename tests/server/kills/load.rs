//! Clients that go on through kills: each repeats what was not answered, under the same request id, until it is.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use lease_core::wire::{AcquireReply, ReleaseReply, RenewReply, Reply};
use tests::Client;
use tests::clock::{Deadline, SOON, Stopwatch};
use tests::history::{History, Op, Outcome, Record};
use tests::random::Random;
use tests::resp::{Gone, encoded};

/// Clients at once. The last one takes its locks by plain SET.
const PROCESSES: u32 = 6;
/// Longer than any run: no lease of these ends by its time.
const TTL_MS: u64 = 600_000;
/// Leases that only one process asks for, and leases that all ask for.
const OWN: u64 = 4;
const SHARED: u64 = 3;

/// The first letters of the owners that a process acquires with.
pub(super) fn name_of_process(process: u32) -> String {
    format!("p{process}-")
}

/// The clients, and what they saw.
pub(super) struct Load {
    pub(super) history: Arc<History>,
    pub(super) clock: Stopwatch,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    address: Option<SocketAddr>,
    /// Answers since the load was told where to go.
    answers: u64,
    stopped: bool,
}

impl Load {
    pub(super) fn start(seed: u64) -> Self {
        let history = Arc::new(History::new());
        let clock = Stopwatch::start();
        let shared = Arc::new(Shared::default());
        let threads = (1..=PROCESSES).map(|process| {
            let worker = Worker {
                process,
                random: Random::new(seed ^ u64::from(process)),
                history: Arc::clone(&history),
                clock,
                shared: Arc::clone(&shared),
                client: None,
                held: BTreeMap::new(),
                next_request: 0,
            };
            std::thread::spawn(move || drop(worker.run()))
        });
        Self {
            threads: threads.collect(),
            history,
            clock,
            shared,
        }
    }

    /// Tells the clients where the server is now.
    pub(super) fn serve_at(&self, address: SocketAddr) {
        let mut state = self.shared.lock();
        state.address = Some(address);
        state.answers = 0;
        self.shared.changed.notify_all();
    }

    /// Waits for so many answers from there.
    pub(super) fn wait_for_answers(&self, count: u64) {
        let deadline = Deadline::after(SOON);
        let mut state = self.shared.lock();
        while state.answers < count {
            let Some(left) = deadline.left() else {
                panic!("the clients got {} answers of {count}", state.answers);
            };
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Lets each client finish what it has begun, and waits for all.
    pub(super) fn stop(self) -> Self {
        self.shared.lock().stopped = true;
        self.join()
    }

    /// Stops clients that have no server to finish anything with.
    pub(super) fn stop_without_server(self) -> Self {
        {
            let mut state = self.shared.lock();
            state.stopped = true;
            state.address = None;
        }
        self.join()
    }

    fn join(mut self) -> Self {
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            assert!(thread.join().is_ok(), "a client failed");
        }
        self
    }

    /// Every lease that was ever asked for.
    pub(super) fn resources(&self) -> BTreeSet<String> {
        self.history
            .records()
            .into_iter()
            .map(|record| record.resource)
            .collect()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // After a failed test, too: the threads end by themselves.
        self.shared.lock().stopped = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopped(&self) -> bool {
        self.lock().stopped
    }

    fn answered(&self) {
        self.lock().answers += 1;
        self.changed.notify_all();
    }

    /// A connection to the server of the moment; `None` once there is none to wait for.
    fn connect(&self) -> Option<Client> {
        let deadline = Deadline::after(SOON);
        let mut state = self.lock();
        loop {
            if let Some(address) = state.address {
                drop(state);
                if let Ok(client) = Client::try_connect(address) {
                    return Some(client);
                }
                state = self.lock();
                if state.address == Some(address) {
                    // It was killed, and nobody has said yet where the next one is.
                    state.address = None;
                }
            } else {
                if state.stopped {
                    return None;
                }
                let left = deadline.left()?;
                let waited = self.changed.wait_timeout(state, left);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }
}

/// No server, and none to come.
struct Over;

struct Worker {
    process: u32,
    random: Random,
    history: Arc<History>,
    clock: Stopwatch,
    shared: Arc<Shared>,
    client: Option<Client>,
    /// What it holds, and under which token.
    held: BTreeMap<String, u64>,
    next_request: u64,
}

impl Worker {
    fn run(mut self) -> Result<(), Over> {
        while !self.shared.is_stopped() {
            if self.process == PROCESSES {
                self.set_and_ask()?;
                continue;
            }
            let resource = match self.random.percent(70) {
                true => format!("own-{}-{}", self.process, self.random.below(OWN)),
                false => format!("shared-{}", self.random.below(SHARED)),
            };
            match self.held.get(&resource).copied() {
                None => self.acquire(&resource)?,
                Some(token) if self.random.percent(50) => self.renew(&resource, token)?,
                Some(token) => self.release(&resource, token)?,
            }
        }
        Ok(())
    }

    fn record(&self, op: Op, resource: &str) -> Record {
        Record {
            process: self.process,
            op,
            resource: resource.to_owned(),
            request_id: None,
            call: self.clock.micros(),
            returned: None,
            outcome: Outcome::Unknown,
            token: None,
            ttl_ms: None,
        }
    }

    /// Asks again and again until there is an answer that says what was done; writes every attempt down.
    /// `read` gives the outcome, the token and the time that an answer shows; `None` if it says "unknown".
    fn ask<T>(
        &mut self,
        args: &[&str],
        template: &Record,
        read: impl Fn(Reply, &mut Record) -> Option<T>,
    ) -> Result<T, Over> {
        loop {
            let mut client = match self.client.take() {
                Some(client) => client,
                None => self.shared.connect().ok_or(Over)?,
            };
            let mut record = Record {
                call: self.clock.micros(),
                ..template.clone()
            };
            let answer = client.try_call(args);
            let returned = self.clock.micros();
            let read = match answer {
                Ok(reply) => {
                    self.client = Some(client);
                    read(reply, &mut record)
                }
                Err(Gone(_)) => None,
            };
            if read.is_some() {
                record.returned = Some(returned);
            }
            self.history.add(record);
            if let Some(read) = read {
                self.shared.answered();
                return Ok(read);
            }
        }
    }

    fn acquire(&mut self, resource: &str) -> Result<(), Over> {
        self.next_request += 1;
        let owner = format!("{}me", name_of_process(self.process));
        let request = format!("{owner}-{}", self.next_request);
        let template = Record {
            request_id: Some(request.clone()),
            ..self.record(Op::Acquire, resource)
        };
        let ttl = TTL_MS.to_string();
        let args = ["LEASE.ACQUIRE", resource, &owner, &ttl, "REQ", &request];
        let token = self.ask(
            &args,
            &template,
            |reply, record| match AcquireReply::from_reply(reply).ok()? {
                AcquireReply::Granted {
                    token,
                    remaining_ms,
                    waited_ms,
                } => {
                    record.outcome = Outcome::Ok;
                    record.token = Some(token.get());
                    record.ttl_ms = remaining_ms.map(|remaining| remaining + waited_ms);
                    Some(Some(token.get()))
                }
                AcquireReply::Held { token, .. } => {
                    record.outcome = Outcome::Fail;
                    record.token = Some(token.get());
                    Some(None)
                }
                ended @ AcquireReply::Ended { .. } => panic!("nobody ended {}: {ended:?}", record.resource),
            },
        )?;
        if let Some(token) = token {
            self.held.insert(resource.to_owned(), token);
        }
        Ok(())
    }

    fn renew(&mut self, resource: &str, token: u64) -> Result<(), Over> {
        let template = Record {
            token: Some(token),
            ttl_ms: Some(TTL_MS),
            ..self.record(Op::Renew, resource)
        };
        let args = ["LEASE.RENEW", resource, &token.to_string(), &TTL_MS.to_string()];
        let stands = self.ask(&args, &template, |reply, record| {
            match RenewReply::from_reply(reply).ok()? {
                RenewReply::Renewed { remaining_ms } => {
                    record.outcome = Outcome::Ok;
                    record.ttl_ms = remaining_ms;
                    Some(true)
                }
                RenewReply::Lost { .. } => {
                    record.outcome = Outcome::Fail;
                    Some(false)
                }
            }
        })?;
        if !stands {
            // Whether it may be lost is for the check to say.
            self.held.remove(resource);
        }
        Ok(())
    }

    fn release(&mut self, resource: &str, token: u64) -> Result<(), Over> {
        let template = Record {
            token: Some(token),
            ..self.record(Op::Release, resource)
        };
        let args = ["LEASE.RELEASE", resource, &token.to_string()];
        self.ask(&args, &template, |reply, record| {
            record.outcome = match ReleaseReply::from_reply(reply).ok()? {
                ReleaseReply::Released => Outcome::Ok,
                // An attempt before, whose answer was lost, has released it.
                ReleaseReply::Lost { .. } => Outcome::Fail,
            };
            Some(())
        })?;
        self.held.remove(resource);
        Ok(())
    }

    /// A lock as plain Redis clients take it, and its token in the same pipeline. Never repeated, so each has a name of
    /// its own; without both answers its fate is open.
    fn set_and_ask(&mut self) -> Result<(), Over> {
        self.next_request += 1;
        let resource = format!("set-{}", self.next_request);
        let owner = format!("{}{}", name_of_process(self.process), self.next_request);
        let ttl = TTL_MS.to_string();
        let mut client = match self.client.take() {
            Some(client) => client,
            None => self.shared.connect().ok_or(Over)?,
        };
        let mut record = self.record(Op::Acquire, &resource);
        let mut bytes = encoded(&["SET", &resource, &owner, "NX", "PX", &ttl]);
        bytes.extend_from_slice(&encoded(&["LEASE.TOKEN", &resource, &owner]));
        let asked = client.try_send_raw(&bytes);
        let answers = asked.and_then(|()| Ok((client.try_receive()?, client.try_receive()?)));
        if let Ok((Reply::Simple(_), Reply::Integer(token))) = answers {
            record.returned = Some(self.clock.micros());
            record.outcome = Outcome::Ok;
            record.token = u64::try_from(token).ok();
            record.ttl_ms = Some(TTL_MS);
            self.client = Some(client);
            self.shared.answered();
        }
        self.history.add(record);
        Ok(())
    }
}
