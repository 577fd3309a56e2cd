use bytes::{BufMut as _, BytesMut};

use super::decimal::write_header;

/// Appends one request: an array of its arguments, the command's name first. Any bytes may stand in an argument.
///
/// A server refuses requests above its limits ([`crate::wire::RequestLimits`]); this does not check them.
pub fn encode_request<A: AsRef<[u8]>>(args: &[A], out: &mut BytesMut) {
    write_header(b'*', args.len(), out);
    for arg in args {
        let arg = arg.as_ref();
        out.reserve(arg.len().saturating_add(32));
        write_header(b'$', arg.len(), out);
        out.put_slice(arg);
        out.put_slice(b"\r\n");
    }
}
