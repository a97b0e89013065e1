//! A headless Chromium, driven by the W3C's WebDriver protocol through Debian's ChromeDriver. Each has a profile
//! of its own, and ends when its value is dropped.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::child::{self, Running};
use super::{require, wait_until};

/// How long the driver may take to listen, and the browser to open a page on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// The key under which WebDriver names elements (W3C WebDriver, 12.1).
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// The keys that have no character of their own (W3C WebDriver, 17.4.2).
pub const TAB: &str = "\u{e004}";
/// See [`TAB`].
pub const ENTER: &str = "\u{e007}";

/// A browser with one window.
pub struct Browser {
    agent: ureq::Agent,
    session: String,
    site: String,
    _driver: Running,
    _keeps: TempDir,
}

impl Browser {
    /// Starts one for the server at this address, in a window of this size.
    pub fn at(address: &str, (width, height): (u32, u32)) -> Self {
        let keeps = tempfile::Builder::new().prefix("browser-").tempdir().unwrap();
        let log = keeps.path().join("driver");
        let mut command = Command::new(require("chromedriver"));
        command.args(["--port=0", "--log-level=WARNING"]).env("HOME", keeps.path());
        command.stdin(Stdio::null()).stdout(child::create(&log)).stderr(Stdio::null());
        let mut driver = Running::spawn("chromedriver", &mut command);
        let port = wait_until(LIMIT, "chromedriver to listen", || {
            assert!(driver.try_wait().is_none(), "chromedriver: {}", child::read_lossy(&log));
            let text = child::read_lossy(&log);
            let (_, rest) = text.split_once("successfully on port ")?;
            rest.split_once('.').map(|(port, _)| port.to_owned())
        });
        let agent = super::exporter::agent(LIMIT);
        let profile = keeps.path().join("profile");
        let arguments = [
            "--headless".to_owned(),
            // Root, who may run the tests, has no sandbox. Only our own pages are shown.
            "--no-sandbox".into(),
            "--disable-gpu".into(),
            "--disable-dev-shm-usage".into(),
            // Only the page is fetched.
            "--disable-background-networking".into(),
            "--disable-component-update".into(),
            "--disable-sync".into(),
            "--disable-quic".into(),
            "--no-first-run".into(),
            "--hide-scrollbars".into(),
            format!("--window-size={width},{height}"),
            format!("--user-data-dir={}", profile.display()),
        ];
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"binary": require("chromium"), "args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let url = format!("http://127.0.0.1:{port}/session");
        let started = send(&agent, "POST", &url, &wanted).unwrap_or_else(|e| panic!("{e}"));
        let session = format!("{url}/{}", started["sessionId"].as_str().unwrap());
        let site = format!("http://{address}");
        let browser = Browser { agent, session, site, _driver: driver, _keeps: keeps };
        browser.resize(width, height);
        browser
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let url = format!("{}{path}", self.session);
        send(&self.agent, method, &url, body).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn get(&self, path: &str) -> Value {
        self.ask("GET", path, &Value::Null)
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        self.ask("POST", path, body)
    }

    /// Sends a command of Chromium's own protocol.
    fn command(&self, name: &str, parameters: &Value) -> Value {
        self.post("/goog/cdp/execute", &json!({"cmd": name, "params": parameters}))
    }

    /// Sets the size of the visible area.
    pub fn resize(&self, width: u32, height: u32) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.command("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Sets the preferred color scheme, `light` or `dark`.
    pub fn prefer(&self, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.command("Emulation.setEmulatedMedia", &json!({"features": features}));
    }

    /// Opens a page of the site.
    pub fn open(&self, path: &str) {
        self.post("/url", &json!({"url": format!("{}{path}", self.site)}));
    }

    /// Opens a file of this machine.
    pub fn open_file(&self, file: &Path) {
        self.post("/url", &json!({"url": format!("file://{}", file.display())}));
    }

    /// Moves the pointer over the middle of the first element that matches a CSS selector.
    pub fn hover(&self, selector: &str) {
        let origin = json!({ELEMENT: self.element(selector)});
        let to = json!({"type": "pointerMove", "duration": 0, "x": 0, "y": 0, "origin": origin});
        let actions = json!([{"type": "pointer", "id": "mouse", "actions": [to]}]);
        self.post("/actions", &json!({"actions": actions}));
    }

    /// The current address, without the site.
    pub fn path(&self) -> String {
        let url = self.get("/url");
        let url = url.as_str().unwrap();
        url.strip_prefix(&self.site).unwrap_or(url).to_owned()
    }

    fn element(&self, selector: &str) -> String {
        let found = self.post("/element", &json!({"using": "css selector", "value": selector}));
        found[ELEMENT].as_str().unwrap_or_else(|| panic!("{selector}: {found}")).to_owned()
    }

    /// Clicks the first element that matches a CSS selector, and waits for the page.
    pub fn click(&self, selector: &str) {
        let element = self.element(selector);
        self.post(&format!("/element/{element}/click"), &json!({}));
    }

    /// The visible text of the first element that matches a CSS selector.
    pub fn text(&self, selector: &str) -> String {
        let text = self.get(&format!("/element/{}/text", self.element(selector)));
        text.as_str().unwrap().to_owned()
    }

    /// Presses keys, one after the other, at the focused element.
    pub fn press(&self, keys: &str) {
        let strokes: Vec<Value> = keys
            .chars()
            .flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({"type": kind, "value": key})))
            .collect();
        let actions = json!([{"type": "key", "id": "keys", "actions": strokes}]);
        self.post("/actions", &json!({"actions": actions}));
    }

    /// The result of a function's body, run in the page.
    pub fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({"script": script, "args": []}))
    }

    /// The result of a function's body that passes it to the last of its arguments.
    pub fn run_until_done(&self, script: &str) -> Value {
        self.post("/execute/async", &json!({"script": script, "args": []}))
    }

    /// The console messages since the last call: errors of scripts, violations of the page's policy, and failed
    /// requests.
    pub fn complaints(&self) -> Vec<String> {
        let log = self.post("/se/log", &json!({"type": "browser"}));
        let said = log.as_array().unwrap().iter();
        said.map(|line| format!("{} {}", line["level"], line["message"])).collect()
    }

    /// Takes a screenshot of the visible area, as PNG.
    pub fn picture(&self, file: &Path) {
        let picture = self.get("/screenshot");
        std::fs::write(file, from_base64(picture.as_str().unwrap())).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends its browser; in a test that has failed already an error here does not matter.
        let _ = send(&self.agent, "DELETE", &self.session, &Value::Null);
    }
}

/// One request to the driver.
fn send(agent: &ureq::Agent, method: &str, url: &str, body: &Value) -> Result<Value, String> {
    let text = |error: ureq::Error| format!("{method} {url}: {error}");
    let answer = match method {
        "GET" => agent.get(url).call(),
        "DELETE" => agent.delete(url).call(),
        _ => agent.post(url).header("content-type", "application/json").send(body.to_string()),
    };
    let answer = super::exporter::response(answer.map_err(text)?).map_err(text)?;
    let mut value: Value = serde_json::from_slice(&answer.body)
        .map_err(|error| format!("{method} {url}: {error}: {}", answer.text()))?;
    match answer.status {
        200 => Ok(value["value"].take()),
        status => {
            Err(format!("{status} {}: {}", value["value"]["error"], value["value"]["message"]))
        }
    }
}

/// Decodes base64 (RFC 4648).
fn from_base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let worth = |byte| DIGITS.iter().position(|digit| *digit == byte).map(|at| at as u32);
    let digits: Vec<u32> = text.bytes().filter_map(worth).collect();
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for four in digits.chunks(4) {
        let bits =
            four.iter().enumerate().fold(0, |bits, (at, digit)| bits | digit << (18 - 6 * at));
        bytes.extend(&bits.to_be_bytes()[1..four.len()]);
    }
    bytes
}
