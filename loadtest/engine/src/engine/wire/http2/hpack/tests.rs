use super::*;
use proptest::prelude::*;

fn fields(block: &[u8]) -> Result<Vec<(String, String)>, BadBlock> {
    let mut fields = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    decode(block, |name, value| fields.push((text(name), text(value))))?;
    Ok(fields)
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

#[test]
fn numbers_are_those_of_appendix_c_1() {
    for (pattern, prefix, value, bytes) in
        [(0u8, 5, 10usize, &[10u8][..]), (0, 5, 1337, &[31, 154, 10]), (0, 8, 42, &[42])]
    {
        let mut written = Vec::new();
        write_number(pattern, prefix, value, &mut written);
        assert_eq!(written, bytes);
        let mut rest = bytes;
        assert_eq!((number(&mut rest, prefix), rest), (Ok(value), &[][..]));
    }
    for endless in [&[31u8][..], &[31, 255], &[31, 255, 255, 255, 255, 255, 255, 1], &[]] {
        assert_eq!(number(&mut &endless[..], 5), Err(BadBlock), "{endless:?}");
    }
}

#[test]
fn blocks_of_appendix_c_that_need_no_dynamic_table_are_read() {
    let request = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "www.example.com"),
    ];
    let answer = [
        (":status", "302"),
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
        ("location", "https://www.example.com"),
    ];
    let known: [(&str, &[(&str, &str)]); 8] = [
        (
            "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            &[("custom-key", "custom-header")],
        ),
        ("040c 2f73 616d 706c 652f 7061 7468", &[(":path", "/sample/path")]),
        ("1008 7061 7373 776f 7264 0673 6563 7265 74", &[("password", "secret")]),
        ("82", &[(":method", "GET")]),
        ("8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", &request),
        ("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", &request),
        (
            "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 \
             2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 \
             6c65 2e63 6f6d",
            &answer,
        ),
        (
            "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 \
             2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
            &answer,
        ),
    ];
    for (block, expected) in known {
        let read = fields(&hex(block)).unwrap();
        let read: Vec<_> = read.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(read, expected, "{block}");
    }
}

#[test]
fn a_table_that_we_did_not_offer_is_refused() {
    assert_eq!(fields(&hex("20 88")).unwrap().len(), 1);
    assert_eq!(fields(&hex("20 20 88")).unwrap().len(), 1);
    for (block, why) in [
        ("82 86 84 be 58 08 6e6f 2d63 6163 6865", "C.3.2 refers to the dynamic table"),
        ("7e 01 61", "a name in the dynamic table"),
        ("3f e1 1f", "a size update to 4096"),
        ("88 20", "a size update after a field"),
        ("80", "index 0"),
        ("40 01 61 05 62", "a value that is cut off"),
        ("40 01", "a name that is cut off"),
        ("41 81 00", "a bad Huffman string"),
        ("ff ff ff ff ff ff", "a number without end"),
    ] {
        assert_eq!(fields(&hex(block)), Err(BadBlock), "{why}");
    }
}

proptest! {
    #[test]
    fn literals_of_every_kind_are_read(
        name in "[a-z-]{1,20}", value in "[ -~]{0,200}",
        pattern in prop::sample::select(vec![0x40u8, 0x00, 0x10]), coded in any::<bool>(),
    ) {
        let mut block = vec![pattern];
        for text in [&name, &value] {
            let mut bytes = Vec::new();
            if coded { huffman::encode(text.as_bytes(), &mut bytes) } else { bytes.extend_from_slice(text.as_bytes()) }
            write_number(if coded { 0x80 } else { 0 }, 7, bytes.len(), &mut block);
            block.extend_from_slice(&bytes);
        }
        prop_assert_eq!(fields(&block), Ok(vec![(name, value)]));
    }

    #[test]
    fn no_block_panics(block in prop::collection::vec(any::<u8>(), 0..60)) {
        let _ = fields(&block);
    }

    #[test]
    fn numbers_come_back(value in 0usize..LARGEST_NUMBER, prefix in 4u32..8) {
        let mut written = Vec::new();
        write_number(0, prefix, value, &mut written);
        let mut rest = written.as_slice();
        prop_assert_eq!(number(&mut rest, prefix), Ok(value));
        prop_assert!(rest.is_empty());
    }
}
