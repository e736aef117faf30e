//! A QR code as an SVG.

use qrcodegen::{QrCode, QrCodeEcc};
use std::fmt::Write as _;

/// Quiet zone on each side that a reader needs to find the code, in modules (ISO/IEC 18004).
const QUIET: i32 = 4;
/// Default size of a module, in px.
const MODULE_PX: i32 = 8;

/// The SVG of `text`, `size_px` on each side, by default 8 px per module; `None` if the text is
/// longer than a QR code can hold, which is 2331 bytes at least here.
pub(super) fn svg(text: &str, size_px: Option<u64>) -> Option<String> {
    let code = QrCode::encode_text(text, QrCodeEcc::Medium).ok()?;
    let side = code.size() + 2 * QUIET;
    let size_px = size_px.unwrap_or((side * MODULE_PX) as u64);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{size_px}\" height=\"{size_px}\" \
         viewBox=\"0 0 {side} {side}\" shape-rendering=\"crispEdges\">\
         <path fill=\"#fff\" d=\"M0 0h{side}v{side}H0z\"/><path d=\""
    );
    for y in 0..code.size() {
        let mut x = 0;
        while x < code.size() {
            let dark = (x..code.size()).take_while(|&x| code.get_module(x, y)).count() as i32;
            if dark > 0 {
                // Writing to a string cannot fail.
                let _ = write!(svg, "M{} {}h{dark}v1h-{dark}z", x + QUIET, y + QUIET);
            }
            x += dark + 1;
        }
    }
    svg.push_str("\"/></svg>");
    Some(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The modules that the SVG's last path draws.
    fn drawn(svg: &str, side: usize) -> Vec<Vec<bool>> {
        let path = svg.rsplit("<path d=\"").next().unwrap().split('"').next().unwrap();
        let mut modules = vec![vec![false; side]; side];
        for run in path.split_terminator('z') {
            let (x, rest) = run.strip_prefix('M').unwrap().split_once(' ').unwrap();
            let (y, rest) = rest.split_once('h').unwrap();
            let (dark, back) = rest.split_once("v1h-").unwrap();
            assert_eq!(dark, back);
            let (x, y): (usize, usize) = (x.parse().unwrap(), y.parse().unwrap());
            modules[y][x..x + dark.parse::<usize>().unwrap()].fill(true);
        }
        modules
    }

    #[test]
    fn every_module_is_drawn_within_a_quiet_zone() {
        let text = "http://localhost:4000/Yci";
        let code = QrCode::encode_text(text, QrCodeEcc::Medium).unwrap();
        let side = (code.size() + 8) as usize;
        let modules = drawn(&svg(text, None).unwrap(), side);
        for (y, row) in modules.iter().enumerate() {
            for (x, &dark) in row.iter().enumerate() {
                // Outside the code, `get_module` returns light.
                assert_eq!(dark, code.get_module(x as i32 - 4, y as i32 - 4), "{x} {y}");
            }
        }
        assert!(modules[4][4..11].iter().all(|&dark| dark), "the finder's edge");
    }

    #[test]
    fn the_size_is_the_one_asked_for() {
        let of = |size| svg("http://a/b", size).unwrap();
        assert!(of(Some(300)).contains("width=\"300\" height=\"300\" viewBox=\"0 0 29 29\""));
        assert!(of(None).contains("width=\"232\" height=\"232\" viewBox=\"0 0 29 29\""));
        assert!(svg(&"x".repeat(3000), None).is_none());
    }
}
