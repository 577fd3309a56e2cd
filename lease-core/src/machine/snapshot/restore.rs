//! Reads a snapshot back.

use std::io::{self, Read};

use serde::Deserialize;

use super::super::codec::{self, CodecError};
use super::super::leases::Hold;
use super::super::requests::{Over, RequestKey, RequestState};
use super::super::slab::Slot;
use super::super::waits::Wait;
use super::super::{LeaseMachine, MachineVersion};
use super::{FORMAT, Header, Item, MAGIC, SnapshotError, StoredLease, StoredRequest, StoredWait};
use crate::limits::ENTRY_BYTES_MAX;
use crate::types::Timestamp;

impl LeaseMachine {
    /// Reads back what [`View::encode`](super::View::encode) wrote.
    ///
    /// # Errors
    /// [`SnapshotError`]; whatever was read is dropped.
    pub fn decode(input: &mut impl Read) -> Result<Self, SnapshotError> {
        let mut start = [0; MAGIC.len() + 1];
        input.read_exact(&mut start).map_err(SnapshotError::Read)?;
        let [magic @ .., format] = start;
        if magic != MAGIC {
            return Err(SnapshotError::NotASnapshot);
        }
        if format != FORMAT {
            return Err(SnapshotError::Item(CodecError::UnknownFormat {
                found: format,
                known: FORMAT,
            }));
        }
        let mut frame = Vec::new();
        let header: Header = read_item(input, &mut frame)?;
        if header.version > MachineVersion::LATEST {
            let known = MachineVersion::LATEST;
            return Err(SnapshotError::UnsupportedVersion {
                found: header.version,
                known,
            });
        }
        let mut machine = Self::new();
        let mut items: u64 = 0;
        let mut last = None;
        loop {
            let item: Item = read_item(input, &mut frame)?;
            let place = Some(item.place());
            if place <= last {
                return Err(inconsistent(format!("item {items} is out of order")));
            }
            last = place;
            match item {
                Item::Request(request) => machine.restore_request(request),
                Item::Lease(lease) => machine.restore_lease(lease)?,
                Item::Wait(wait) => machine.restore_wait(wait)?,
                Item::Ending(ending) => machine.endings.restore(ending),
                Item::Session { node, session } => machine.sessions.restore(node, session),
                Item::Script(script) => {
                    machine.load_script(script.digest, &script.program);
                }
                Item::Close { items: expected } if expected == items => break,
                Item::Close { items: expected } => {
                    return Err(inconsistent(format!("{items} items, not {expected}")));
                }
            }
            items = items.saturating_add(1);
        }
        machine.restore_header(header);
        machine
            .check()
            .map_err(|broken| inconsistent(broken.to_string()))?;
        Ok(machine)
    }

    fn restore_header(&mut self, header: Header) {
        self.version = header.version;
        self.limits = header.limits;
        self.now = header.now.min(Timestamp::LAST);
        self.tokens = header.tokens;
        self.waits.restore_last_id(header.last_wait);
        self.requests.restore_last_sequence(header.last_over);
        self.endings.restore_last_sequence(header.last_ending);
        self.incarnations = header.incarnations;
    }

    fn restore_request(&mut self, stored: StoredRequest) {
        let StoredRequest {
            key,
            owner,
            id,
            token,
            reason,
            at,
            sequence,
        } = stored;
        self.requests.restore_over(
            RequestKey { key, owner, id },
            Over {
                token,
                reason,
                at,
                sequence,
            },
        );
    }

    fn restore_lease(&mut self, stored: StoredLease) -> Result<(), SnapshotError> {
        let slot = self.leases.find_or_make(&stored.key);
        if self.leases.hold(slot).is_some() {
            return Err(inconsistent(format!("{} is held twice", stored.key.name)));
        }
        let request = stored.request.map(|id| {
            let key = RequestKey {
                key: stored.key,
                owner: stored.owner.clone(),
                id,
            };
            self.requests.insert(key, RequestState::Held(stored.token))
        });
        let hold = Hold {
            owner: stored.owner,
            token: stored.token,
            granted_at: stored.granted_at,
            deadline: stored.deadline,
            ttl: stored.ttl,
            metadata: stored.metadata,
            request,
            deadline_set_by: stored.deadline_set_by,
        };
        self.leases.put_hold(slot, hold);
        Ok(())
    }

    fn restore_wait(&mut self, stored: StoredWait) -> Result<(), SnapshotError> {
        if self.waits.by_attachment(stored.attachment).is_some() {
            return Err(inconsistent(format!(
                "two waits have the attachment {}",
                stored.attachment
            )));
        }
        let slot = self.leases.find_or_make(&stored.key);
        let request = stored.request.map(|id| {
            let key = RequestKey {
                key: stored.key,
                owner: stored.owner.clone(),
                id,
            };
            self.requests.insert(key, RequestState::Waiting(Slot::FIRST))
        });
        let wait = Wait {
            id: stored.id,
            record: slot,
            owner: stored.owner,
            ttl: stored.ttl,
            metadata: stored.metadata,
            request,
            attachment: stored.attachment,
            attempt_at: stored.attempt_at,
            deadline: stored.deadline,
            presence: stored.presence,
        };
        self.leases.charge(wait.bytes());
        self.leases.add_waiter(slot);
        let wait = self.waits.insert(wait);
        if let Some(request) = request {
            self.requests.set_waiting(request, wait);
        }
        Ok(())
    }
}

/// Reads no more than is there: a length that lies costs nothing.
fn read_item<'a, T: Deserialize<'a>>(
    input: &mut impl Read,
    frame: &'a mut Vec<u8>,
) -> Result<T, SnapshotError> {
    let mut length = [0; 4];
    input.read_exact(&mut length).map_err(SnapshotError::Read)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > ENTRY_BYTES_MAX {
        let error = CodecError::TooLarge {
            what: "snapshot item",
            found: length,
            max: ENTRY_BYTES_MAX,
        };
        return Err(SnapshotError::Item(error));
    }
    frame.clear();
    let read = input
        .by_ref()
        .take(length as u64)
        .read_to_end(frame)
        .map_err(SnapshotError::Read)?;
    if read != length {
        return Err(SnapshotError::Read(io::ErrorKind::UnexpectedEof.into()));
    }
    codec::decode("snapshot item", frame).map_err(SnapshotError::Item)
}

const fn inconsistent(detail: String) -> SnapshotError {
    SnapshotError::Inconsistent { detail }
}
