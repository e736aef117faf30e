//! Header blocks as HPACK writes them (RFC 7541), the reading side.
//!
//! We tell the server that our dynamic table holds 0 bytes, so every block
//! stands for itself: the same bytes always mean the same fields. That is what
//! lets answers be recognised without being decoded.

use super::huffman;

/// The static table (RFC 7541 appendix A); index 1 is its first entry.
#[rustfmt::skip]
pub(super) const STATIC: [(&str, &str); 61] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"),
    (":path", "/index.html"), (":scheme", "http"), (":scheme", "https"), (":status", "200"),
    (":status", "204"), (":status", "206"), (":status", "304"), (":status", "400"),
    (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""),
    ("accept", ""), ("access-control-allow-origin", ""), ("age", ""), ("allow", ""),
    ("authorization", ""), ("cache-control", ""), ("content-disposition", ""),
    ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""),
    ("date", ""), ("etag", ""), ("expect", ""), ("expires", ""), ("from", ""), ("host", ""),
    ("if-match", ""), ("if-modified-since", ""), ("if-none-match", ""), ("if-range", ""),
    ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""), ("location", ""),
    ("max-forwards", ""), ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""),
    ("referer", ""), ("refresh", ""), ("retry-after", ""), ("server", ""), ("set-cookie", ""),
    ("strict-transport-security", ""), ("transfer-encoding", ""), ("user-agent", ""), ("vary", ""),
    ("via", ""), ("www-authenticate", ""),
];

/// The largest number in a block that is not refused.
const LARGEST_NUMBER: usize = 1 << 28;

/// The block is not HPACK, or refers to a dynamic table that we do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadBlock;

/// Calls `visit` with name and value of every field of a block, in order.
///
/// # Errors
/// [`BadBlock`]; some fields may have been visited by then.
pub(super) fn decode(block: &[u8], mut visit: impl FnMut(&[u8], &[u8])) -> Result<(), BadBlock> {
    let (mut names, mut values) = (Vec::new(), Vec::new());
    let mut rest = block;
    let mut fields = 0u32;
    while let Some(first) = rest.first().copied() {
        if first & 0x80 != 0 {
            // Indexed field (section 6.1).
            let (name, value) = entry(number(&mut rest, 7)?)?;
            visit(name.as_bytes(), value.as_bytes());
        } else if first & 0xe0 == 0x20 {
            // Table size update (section 6.3): ours has no room, and it comes before all fields.
            if number(&mut rest, 5)? != 0 || fields > 0 {
                return Err(BadBlock);
            }
            continue;
        } else {
            // Literal: to be indexed (which a table without room ignores), or not (section 6.2).
            let prefix = if first & 0x40 != 0 { 6 } else { 4 };
            let name = match number(&mut rest, prefix)? {
                0 => string(&mut rest, &mut names)?,
                index => entry(index)?.0.as_bytes(),
            };
            let value = string(&mut rest, &mut values)?;
            visit(name, value);
        }
        fields += 1;
    }
    Ok(())
}

fn entry(index: usize) -> Result<(&'static str, &'static str), BadBlock> {
    index.checked_sub(1).and_then(|at| STATIC.get(at)).copied().ok_or(BadBlock)
}

/// Takes a number whose first byte has `prefix` bits of it (section 5.1).
fn number(rest: &mut &[u8], prefix: u32) -> Result<usize, BadBlock> {
    let (first, mut tail) = rest.split_first().ok_or(BadBlock)?;
    let most = (1usize << prefix) - 1;
    let mut value = usize::from(*first) & most;
    if value == most {
        let mut shift = 0;
        loop {
            let (byte, after) = tail.split_first().ok_or(BadBlock)?;
            tail = after;
            value += usize::from(byte & 0x7f) << shift;
            if value > LARGEST_NUMBER || shift > 28 {
                return Err(BadBlock);
            }
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *rest = tail;
    Ok(value)
}

/// Takes a string (section 5.2); `room` is where it is decoded if need be.
fn string<'r, 'a: 'r>(rest: &mut &'a [u8], room: &'r mut Vec<u8>) -> Result<&'r [u8], BadBlock> {
    let coded = rest.first().is_some_and(|first| first & 0x80 != 0);
    let length = number(rest, 7)?;
    if length > rest.len() {
        return Err(BadBlock);
    }
    let (bytes, after) = rest.split_at(length);
    *rest = after;
    if !coded {
        return Ok(bytes);
    }
    room.clear();
    if huffman::decode(bytes, room) { Ok(room) } else { Err(BadBlock) }
}

/// Appends a number whose first byte begins with `pattern` and has `prefix` bits of it.
pub(super) fn write_number(pattern: u8, prefix: u32, mut value: usize, out: &mut Vec<u8>) {
    let most = (1usize << prefix) - 1;
    if value < most {
        out.push(pattern | value as u8);
        return;
    }
    out.push(pattern | most as u8);
    value -= most;
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests;
