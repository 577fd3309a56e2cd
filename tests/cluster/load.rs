//! Clients that go from node to node: each repeats what has no outcome at the next one, under the same request id.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use lease_core::wire::{AcquireReply, GetReply, ReleaseReply, RenewReply, Reply};
use tests::Client;
use tests::clock::{Deadline, SOON, Stopwatch};
use tests::history::{History, Micros, Op, Outage, Outcome, Promise, Record, check, check_times};
use tests::random::Random;
use tests::resp::Gone;
use tests::show::show;

/// Leases that only one client asks for, and leases that all ask for.
const OWN: u64 = 4;
const SHARED: u64 = 4;
/// Longer than any run, and so short that leases end in it.
const LONG_MS: u64 = 600_000;
const SHORT_MS: u64 = 3_000;
/// Before the next node is asked.
const PAUSE: Duration = Duration::from_millis(10);
/// A lease that ends is replaced within this time, on a machine that has other things to do.
const PROMISE: Promise = Promise {
    commit: 1_000_000,
    leader_change: 200_000,
};
/// The reader writes as this process; clients count from 1.
const READER: u32 = 0;

/// The clients, and what they saw.
pub(crate) struct Load {
    pub(crate) history: Arc<History>,
    pub(crate) clock: Stopwatch,
    outages: Mutex<Vec<Outage>>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    addresses: Vec<SocketAddr>,
    state: Mutex<State>,
    granted: Condvar,
    stopped: Condvar,
}

#[derive(Default)]
struct State {
    /// Grants that were asked for and returned after the last mark.
    grants: u64,
    marked_at: Micros,
    stopped: bool,
}

impl Load {
    /// `patience` is how long a client waits for an answer before it asks another node; it is given to one after the
    /// other, again and again.
    pub(crate) fn start(addresses: Vec<SocketAddr>, clients: u32, patience: &[Duration]) -> Self {
        let seed = Random::seed(20_261_130);
        let history = Arc::new(History::new());
        let clock = Stopwatch::start();
        let shared = Arc::new(Shared {
            addresses,
            state: Mutex::default(),
            granted: Condvar::new(),
            stopped: Condvar::new(),
        });
        let patience = patience.iter().copied().cycle();
        let threads = (1..=clients).zip(patience).map(|(process, patience)| {
            let worker = Worker {
                process,
                patience,
                at: usize::try_from(process).unwrap_or_default(),
                random: Random::new(seed ^ u64::from(process)),
                history: Arc::clone(&history),
                clock,
                shared: Arc::clone(&shared),
                client: None,
                held: BTreeMap::new(),
                next_request: 0,
            };
            std::thread::spawn(move || worker.run())
        });
        Self {
            threads: threads.collect(),
            history,
            clock,
            outages: Mutex::default(),
            shared,
        }
    }

    /// From now on grants are counted anew.
    pub(crate) fn mark(&self) -> Micros {
        let mut state = self.shared.lock();
        state.grants = 0;
        state.marked_at = self.clock.micros();
        state.marked_at
    }

    /// How many grants there are that were asked for after the mark.
    pub(crate) fn grants(&self) -> u64 {
        self.shared.lock().grants
    }

    /// Waits for so many grants that were asked for after the mark.
    pub(crate) fn wait_for_grants(&self, count: u64) {
        let deadline = Deadline::after(SOON);
        let mut state = self.shared.lock();
        while state.grants < count {
            let Some(left) = deadline.left() else {
                panic!("the clients got {} grants of {count}", state.grants);
            };
            let waited = self.shared.granted.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The cluster may have stood still from this moment until now.
    pub(crate) fn was_disturbed(&self, from: Micros) {
        let to = self.clock.micros();
        let mut outages = self.outages.lock().unwrap();
        outages.push(Outage { from, to });
    }

    /// Lets each client finish what it has begun, and waits for all.
    pub(crate) fn stop(&mut self) {
        self.shared.stop();
        for thread in self.threads.drain(..) {
            assert!(thread.join().is_ok(), "a client failed");
        }
    }

    /// Reads every lease that was ever asked for at each of the nodes, and checks the whole history.
    #[track_caller]
    pub(crate) fn expect_no_violation(&self) {
        let resources: BTreeSet<String> = self
            .history
            .records()
            .into_iter()
            .map(|record| record.resource)
            .collect();
        for address in &self.shared.addresses {
            let mut client = Client::connect(*address);
            for resource in &resources {
                self.read(&mut client, resource);
            }
        }
        let records = self.history.records();
        let mut violations = check(&records);
        let (about_times, judged) = check_times(&records, &self.outages.lock().unwrap(), PROMISE);
        violations.extend(about_times);
        let lines: Vec<String> = violations.iter().take(20).map(ToString::to_string).collect();
        let seed = Random::seed(20_261_130);
        assert!(
            violations.is_empty(),
            "LEASE_TEST_SEED={seed}: {} violations\n{}",
            violations.len(),
            lines.join("\n")
        );
        assert!(judged.ends > 0 && judged.told > 0, "{judged:?}");
    }

    fn read(&self, client: &mut Client, resource: &str) {
        let call = self.clock.micros();
        let reply = client.call_args(&["LEASE.GET", resource]);
        let seen = GetReply::from_reply(reply).unwrap().lease;
        self.history.add(Record {
            process: READER,
            op: Op::Read,
            resource: resource.to_owned(),
            request_id: None,
            call,
            returned: Some(self.clock.micros()),
            outcome: Outcome::Ok,
            token: seen.as_ref().map(|lease| lease.token.get()),
            ttl_ms: seen.and_then(|lease| lease.remaining_ms),
        });
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // After a failed test, too: the threads end by themselves.
        self.shared.stop();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self) {
        self.lock().stopped = true;
        self.stopped.notify_all();
    }

    fn is_stopped(&self) -> bool {
        self.lock().stopped
    }

    fn granted(&self, call: Micros) {
        let mut state = self.lock();
        if call > state.marked_at {
            state.grants += 1;
            self.granted.notify_all();
        }
    }

    /// Lets a moment pass, or less if the run is over.
    fn pause(&self) {
        drop(self.stopped.wait_timeout(self.lock(), PAUSE));
    }
}

struct Worker {
    process: u32,
    patience: Duration,
    /// The node that is asked, or was asked last.
    at: usize,
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
    fn run(mut self) {
        while !self.shared.is_stopped() {
            let resource = match self.random.percent(75) {
                true => format!("own-{}-{}", self.process, self.random.below(OWN)),
                false => format!("shared-{}", self.random.below(SHARED)),
            };
            match self.held.get(&resource).copied() {
                None => self.acquire(&resource),
                // As a client that dies: the lease ends by its time.
                Some(_) if self.ttl_ms() == SHORT_MS && self.random.percent(10) => {
                    self.held.remove(&resource);
                }
                Some(token) if self.random.percent(50) => self.renew(&resource, token),
                Some(token) => self.release(&resource, token),
            }
        }
    }

    const fn ttl_ms(&self) -> u64 {
        if self.process.is_multiple_of(2) {
            SHORT_MS
        } else {
            LONG_MS
        }
    }

    const fn record(&self, op: Op, resource: String) -> Record {
        Record {
            process: self.process,
            op,
            resource,
            request_id: None,
            call: 0,
            returned: None,
            outcome: Outcome::Unknown,
            token: None,
            ttl_ms: None,
        }
    }

    fn connected(&mut self) -> Result<Client, Gone> {
        if let Some(client) = self.client.take() {
            return Ok(client);
        }
        let addresses = &self.shared.addresses;
        let address = addresses.iter().cycle().nth(self.at % addresses.len());
        let client = Client::try_connect(*address.unwrap())?;
        client.socket().set_read_timeout(Some(self.patience)).unwrap();
        Ok(client)
    }

    /// Asks again and again, at one node after another, until there is an answer that says what was done; writes every
    /// attempt down. `read` gives what an answer says.
    fn ask<T>(&mut self, args: &[&str], template: &Record, read: impl Fn(Reply, &mut Record) -> T) -> T {
        let deadline = Deadline::after(SOON);
        while deadline.left().is_some() {
            let mut record = template.clone();
            let mut called = None;
            let answer = self.connected().and_then(|mut client| {
                called = Some(self.clock.micros());
                Ok((client.try_call(args)?, client))
            });
            record.call = called.unwrap_or_default();
            match answer {
                Ok((reply, client)) if !has_no_outcome(&reply) => {
                    record.returned = Some(self.clock.micros());
                    self.client = Some(client);
                    let read = read(reply, &mut record);
                    self.history.add(record);
                    return read;
                }
                _ => {
                    if called.is_some() {
                        self.history.add(record);
                    }
                    self.at += 1;
                    self.shared.pause();
                }
            }
        }
        panic!("no node of the cluster answers {args:?}");
    }

    fn acquire(&mut self, resource: &str) {
        self.next_request += 1;
        let owner = format!("p{}", self.process);
        let request = format!("{owner}-{}", self.next_request);
        let template = Record {
            request_id: Some(request.clone()),
            ttl_ms: Some(self.ttl_ms()),
            ..self.record(Op::Acquire, resource.to_owned())
        };
        let ttl = self.ttl_ms().to_string();
        let args = ["LEASE.ACQUIRE", resource, &owner, &ttl, "REQ", &request];
        let granted = self.ask(&args, &template, |reply, record| {
            let text = show(&reply);
            match AcquireReply::from_reply(reply).unwrap_or_else(|error| panic!("{error}: {text}")) {
                AcquireReply::Granted {
                    token,
                    remaining_ms,
                    waited_ms,
                } => {
                    record.outcome = Outcome::Ok;
                    record.token = Some(token.get());
                    record.ttl_ms = remaining_ms.map(|remaining| remaining + waited_ms);
                    Some((token.get(), record.call))
                }
                AcquireReply::Held { token, .. } => {
                    record.outcome = Outcome::Fail;
                    record.token = Some(token.get());
                    None
                }
                AcquireReply::Ended { token, .. } => {
                    // A lost answer granted it, and it ended before it was asked for again.
                    record.outcome = Outcome::Ended;
                    record.token = token.map(lease_core::FenceToken::get);
                    None
                }
            }
        });
        if let Some((token, call)) = granted {
            self.held.insert(resource.to_owned(), token);
            self.shared.granted(call);
        }
    }

    fn renew(&mut self, resource: &str, token: u64) {
        let ttl_ms = self.ttl_ms();
        let template = Record {
            token: Some(token),
            ttl_ms: Some(ttl_ms),
            ..self.record(Op::Renew, resource.to_owned())
        };
        let args = ["LEASE.RENEW", resource, &token.to_string(), &ttl_ms.to_string()];
        let stands = self.ask(&args, &template, |reply, record| {
            let text = show(&reply);
            match RenewReply::from_reply(reply).unwrap_or_else(|error| panic!("{error}: {text}")) {
                RenewReply::Renewed { remaining_ms } => {
                    record.outcome = Outcome::Ok;
                    record.ttl_ms = remaining_ms;
                    true
                }
                RenewReply::Lost { .. } => {
                    record.outcome = Outcome::Fail;
                    false
                }
            }
        });
        if !stands {
            // Whether it may be lost is for the check to say.
            self.held.remove(resource);
        }
    }

    fn release(&mut self, resource: &str, token: u64) {
        let template = Record {
            token: Some(token),
            ..self.record(Op::Release, resource.to_owned())
        };
        let args = ["LEASE.RELEASE", resource, &token.to_string()];
        self.ask(&args, &template, |reply, record| {
            let text = show(&reply);
            let read = ReleaseReply::from_reply(reply).unwrap_or_else(|error| panic!("{error}: {text}"));
            record.outcome = match read {
                ReleaseReply::Released => Outcome::Ok,
                // An attempt before, whose answer was lost, has released it; or its time is over.
                ReleaseReply::Lost { .. } => Outcome::Fail,
            };
        });
        self.held.remove(resource);
    }
}

/// Whether an answer says that nothing is known, or that nobody could serve.
pub(crate) fn has_no_outcome(reply: &Reply) -> bool {
    let text = show(reply);
    text.starts_with("-CLUSTERDOWN ") || text.starts_with("-UNKNOWN ")
}
