//! `export --as html`. Tests of the built page are in `web/e2e/tests/report.spec.ts`; these need no
//! page.

use crate::common::vramscope;

const FILE: &str = "recorded/t26/gpt_small.pickle.gz";

#[test]
fn options_of_reports_need_a_report() {
    for option in [&["--redact"][..], &["--source"], &["--data", "reduced"]] {
        let output = vramscope(&[&["export", "--as", "csv"], option].concat(), &[FILE]);
        assert_eq!(output.status.code(), Some(64), "{option:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("--as html"), "{option:?}");
    }
    let output = vramscope(&["export", "--as", "csv"], &[FILE, FILE]);
    assert_eq!(output.status.code(), Some(64));
    let output = vramscope(&["export", "--as", "html", "--redact", "--source"], &[FILE]);
    assert_eq!(output.status.code(), Some(64));
}

#[cfg(not(feature = "page"))]
#[test]
fn a_program_without_the_page_says_so() {
    let output = vramscope(&["export", "--as", "html"], &[FILE]);
    assert_eq!(output.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&output.stderr).contains("built without the page"));
}
