//! Opens the pages in a browser.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Waits for an address, and opens it. `BROWSER` may list several commands, of which the first that works is used; a
/// command may have arguments.
const SCRIPT: &str = r#"
IFS= read -r url || exit 0
set -f
IFS=:
for browser in ${BROWSER:-xdg-open}; do
    IFS=' '
    $browser "$url" && exit 0
done
exit 1
"#;

/// A process that opens an address once it gets it. It is started before this process is sandboxed, for the browser
/// would inherit the sandbox.
pub struct Browser(Option<Child>);

impl Browser {
    /// Starts the process. An error is reported by [`open`](Self::open).
    pub fn prepare() -> Self {
        let shell = Command::new("/bin/sh")
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C ends the demo, not the browser.
            .process_group(0)
            .spawn();
        Browser(shell.ok())
    }

    /// Opens an address. If that fails, a warning has it.
    pub fn open(self, url: &str) {
        let url = url.to_owned();
        let wait = move || {
            let is_open = self.0.is_some_and(|mut shell| {
                let written = shell.stdin.take().map(|mut to| writeln!(to, "{url}"));
                written.is_some_and(|it| it.is_ok()) && shell.wait().is_ok_and(|it| it.success())
            });
            if !is_open {
                tracing::warn!(url, "no browser could be opened: set BROWSER, or open the URL");
            }
        };
        // It waits as long as the browser runs, and ends with the program.
        let spawned = std::thread::Builder::new().name("browser".into()).spawn(wait);
        if let Err(error) = spawned {
            tracing::warn!(%error, "no browser could be opened");
        }
    }
}
