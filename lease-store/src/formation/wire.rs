//! The bytes of a probe: what a node says of itself before there is a cluster.
//!
//! A format byte, a stage, the cluster that it names, how many nodes have its list, and the members: each an id and an
//! address behind its length. All numbers are little-endian.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use thiserror::Error;

use super::decide::{MemberList, Stage, Standing};

const FORMAT: u8 = 2;

const MEMBER: u8 = 1;
const ADOPTED: u8 = 2;
const EMPTY: u8 = 3;

/// Members of one list at the most: a Raft cluster has few.
const MEMBERS_MAX: usize = 64;

/// Bytes that are no probe of this build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("not a probe that this build knows")]
pub(super) struct Malformed;

pub(super) fn encode(standing: &Standing) -> Bytes {
    let mut out = BytesMut::new();
    let (stage, cluster) = match standing.stage {
        Stage::Member { cluster } => (MEMBER, cluster),
        Stage::Adopted { cluster } => (ADOPTED, cluster),
        Stage::Empty { proposed } => (EMPTY, proposed),
    };
    out.put_u8(FORMAT);
    out.put_u8(stage);
    out.put_u64_le(cluster);
    out.put_u8(u8::try_from(standing.alike).unwrap_or(u8::MAX));
    for (node, address) in &standing.list {
        out.put_u64_le(*node);
        // An address is a host name and a port, checked where it is configured.
        out.put_u16_le(u16::try_from(address.len()).unwrap_or(u16::MAX));
        out.put_slice(address.as_bytes());
    }
    out.freeze()
}

pub(super) fn decode(mut bytes: Bytes) -> Result<Standing, Malformed> {
    if bytes.try_get_u8().map_err(|_| Malformed)? != FORMAT {
        return Err(Malformed);
    }
    let stage = bytes.try_get_u8().map_err(|_| Malformed)?;
    let cluster = bytes.try_get_u64_le().map_err(|_| Malformed)?;
    let stage = match stage {
        MEMBER => Stage::Member { cluster },
        ADOPTED => Stage::Adopted { cluster },
        EMPTY => Stage::Empty { proposed: cluster },
        _ => return Err(Malformed),
    };
    let alike = usize::from(bytes.try_get_u8().map_err(|_| Malformed)?);
    let mut list = MemberList::new();
    while bytes.has_remaining() {
        let node = bytes.try_get_u64_le().map_err(|_| Malformed)?;
        let length = usize::from(bytes.try_get_u16_le().map_err(|_| Malformed)?);
        if length > bytes.len() || list.len() >= MEMBERS_MAX {
            return Err(Malformed);
        }
        let address = String::from_utf8(bytes.split_to(length).to_vec()).map_err(|_| Malformed)?;
        if list.insert(node, address).is_some() {
            return Err(Malformed);
        }
    }
    Ok(Standing { list, stage, alike })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_node_says_of_itself_comes_back_and_no_cut_of_it_does() {
        let list = MemberList::from([(1, "a:1".to_owned()), (2, "b:2".to_owned())]);
        for stage in [
            Stage::Member { cluster: 5 },
            Stage::Adopted { cluster: 6 },
            Stage::Empty { proposed: 7 },
        ] {
            let standing = Standing {
                list: list.clone(),
                stage,
                alike: 2,
            };
            let whole = encode(&standing);
            assert_eq!(decode(whole.clone()), Ok(standing.clone()));
            for end in 0..whole.len() {
                assert_ne!(decode(whole.slice(..end)), Ok(standing.clone()));
            }
        }
        assert_eq!(decode(Bytes::from_static(&[9, 1])), Err(Malformed));
    }
}
