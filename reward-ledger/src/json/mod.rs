//! The JSON of the ledger: what the service, the command line and exports write and read. Numbers of 64 bits are text,
//! since most languages' numbers are not exact there.

mod archive;
mod fields;
mod shapes;

pub(crate) use archive::{read_archived, write_archived};
pub(crate) use fields::{BadField, Fields, read_hex, read_resource, read_signed, read_unsigned};
pub(crate) use shapes::{
    audit_report, claim_record, delivery, fence_state, hex, payment_attempt, receipt, refused_outcome,
    reversal,
};
