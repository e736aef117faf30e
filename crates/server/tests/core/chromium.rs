//! A real browser, headless Chromium: where it is, and a page of it that a test drives over the
//! DevTools protocol. The protocol comes over two named pipes: it needs no port and no WebSocket.
//!
//! Without Chromium the tests say so and pass, unless `WELLSPRING_TEST_REQUIRE_CHROMIUM` is set.

use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long anything may take; no test measures time.
const PATIENCE: Duration = Duration::from_secs(60);

/// The path of the browser; `None` if it is not installed.
pub fn program() -> Option<PathBuf> {
    let named = std::env::var_os("WELLSPRING_TEST_CHROMIUM").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut all = std::env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name)));
    let found = named.or_else(|| all.find(|path| path.is_file()));
    if found.is_none() {
        let required = std::env::var_os("WELLSPRING_TEST_REQUIRE_CHROMIUM").is_some();
        assert!(!required, "WELLSPRING_TEST_REQUIRE_CHROMIUM is set, and there is no Chromium");
        eprintln!(
            "SKIPPED: there is no Chromium (apt-get install chromium), so no browser was asked"
        );
    }
    found
}

/// Flags of every browser of these tests.
pub const FLAGS: &[&str] = &[
    // Chromium has no sandbox when run as root; the test's pages are trusted.
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-popup-blocking",
    "--disable-background-networking",
    // The page keeps running while a window that it opened is in front.
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows",
    "--disable-features=HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,LocalNetworkAccessChecks",
];

/// Ends a browser with its child processes.
pub fn end(child: &mut Child) {
    // SIGTERM, so that its child processes end too.
    let _ = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    let deadline = Instant::now() + Duration::from_secs(10);
    while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// A tab of a browser of its own. Ended when dropped.
pub struct Tab {
    child: Child,
    commands: File,
    answers: Receiver<Value>,
    session: Option<String>,
    last: u64,
    /// What the browser's log and the page's console held of errors.
    errors: Vec<String>,
    _profile: tempfile::TempDir,
}

impl Tab {
    /// Opens a browser with an empty tab.
    pub fn open(program: &Path) -> Tab {
        let profile = tempfile::tempdir().unwrap();
        let pipe = |name: &str| profile.path().join(name);
        let made = Command::new("mkfifo").args([pipe("commands"), pipe("answers")]).status();
        assert!(made.expect("mkfifo runs").success());
        // The browser reads descriptor 3 and writes to 4.
        let child = Command::new("sh")
            .args(["-c", "in=$1 out=$2; shift 2; exec \"$@\" 3<\"$in\" 4>\"$out\"", "sh"])
            .args([pipe("commands"), pipe("answers")])
            .arg(program)
            .args(FLAGS)
            .arg("--remote-debugging-pipe")
            .arg(format!("--user-data-dir={}", profile.path().join("profile").display()))
            .arg("about:blank")
            .env("HOME", profile.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the browser starts");
        let commands = File::options().write(true).open(pipe("commands")).unwrap();
        let answered = File::open(pipe("answers")).unwrap();
        let (tell, answers) = channel();
        std::thread::spawn(move || {
            let messages = BufReader::new(answered).split(0);
            for message in messages.map_while(Result::ok) {
                let _ = tell.send(serde_json::from_slice(&message).expect("JSON"));
            }
        });
        let mut tab = Tab {
            child,
            commands,
            answers,
            session: None,
            last: 0,
            errors: Vec::new(),
            _profile: profile,
        };
        let target = tab.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = tab.call("Target.attachToTarget", attach);
        tab.session = session["sessionId"].as_str().map(str::to_owned);
        for part in ["Page", "Runtime", "Log"] {
            tab.call(&format!("{part}.enable"), json!({}));
        }
        tab
    }

    /// Calls a method of the protocol.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.commands.write_all(&[message.to_string().as_bytes(), b"\0"].concat()).unwrap();
        loop {
            let answer = self.answers.recv_timeout(PATIENCE).expect("the browser answers in time");
            if answer["id"] == self.last {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
            self.note(&answer);
        }
    }

    fn note(&mut self, event: &Value) {
        let params = &event["params"];
        let error = match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => params["exceptionDetails"].to_string(),
            "Runtime.consoleAPICalled" if params["type"] == "error" => params["args"].to_string(),
            "Log.entryAdded" if params["entry"]["level"] == "error" => {
                format!("{} {}", params["entry"]["text"], params["entry"]["url"])
            }
            _ => return,
        };
        self.errors.push(error);
    }

    /// The errors since the last call.
    pub fn errors(&mut self) -> Vec<String> {
        self.run("0");
        std::mem::take(&mut self.errors)
    }

    /// Opens a page as if for the first time.
    pub fn visit(&mut self, url: &str) {
        self.call("Page.navigate", json!({"url": "about:blank"}));
        self.call("Page.navigate", json!({"url": url}));
    }

    /// The value of an expression in the page, which may be a promise.
    pub fn run(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let found = self.call("Runtime.evaluate", params);
        let failed = &found["exceptionDetails"];
        assert!(failed.is_null(), "{expression}: {failed}");
        found["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub fn until(&mut self, expression: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.run(&format!("Boolean({expression})")) != true {
            if Instant::now() > deadline {
                let shown = self.run("document.body.innerText.slice(0, 2000)");
                panic!("never true: {expression}\n{shown}\n{:?}", self.errors);
            }
            std::thread::sleep(Duration::from_millis(40));
        }
    }

    /// Presses a key, `Ctrl+` before its name if that is held.
    pub fn press(&mut self, key: &str) {
        let (key, modifiers) = key.strip_prefix("Ctrl+").map_or((key, 0), |key| (key, 2));
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            "End" => 35,
            "Home" => 36,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            "Backspace" => 8,
            " " => 32,
            _ => panic!("no code for {key}"),
        };
        let text = match key {
            "Enter" => "\r",
            " " => " ",
            _ => "",
        };
        for kind in ["keyDown", "keyUp"] {
            let params = json!({
                "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code,
                "modifiers": modifiers, "text": if kind == "keyDown" { text } else { "" },
            });
            self.call("Input.dispatchKeyEvent", params);
        }
    }

    /// Types a text where the focus is.
    pub fn write(&mut self, text: &str) {
        self.call("Input.insertText", json!({"text": text}));
    }

    /// Presses the tabulator until the element of a selector has the focus.
    pub fn tab_to(&mut self, selector: &str) {
        self.until(&format!("document.querySelector({})", json!(selector)));
        let is_there = format!("document.activeElement?.matches({})", json!(selector));
        for _ in 0..120 {
            if self.run(&is_there) == true {
                return;
            }
            self.press("Tab");
        }
        panic!("the tabulator does not reach {selector}");
    }

    /// The size of the window, in pixels.
    pub fn size(&mut self, width: u32, height: u32) {
        let params = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600,
        });
        self.call("Emulation.setDeviceMetricsOverride", params);
    }

    /// The colours that the user prefers, `light` or `dark`, and still pictures.
    pub fn scheme(&mut self, scheme: &str) {
        let features = json!([
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]);
        self.call("Emulation.setEmulatedMedia", json!({"features": features}));
    }

    /// The picture of the window, as a PNG.
    pub fn picture(&mut self) -> Vec<u8> {
        let found = self.call("Page.captureScreenshot", json!({"format": "png"}));
        let text = found["data"].as_str().expect("a picture");
        base64::Engine::decode(&base64::engine::general_purpose::STANDARD, text).unwrap()
    }
}

impl Drop for Tab {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}
