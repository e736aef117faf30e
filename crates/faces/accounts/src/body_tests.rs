use super::*;

fn field<T>(read: ReadResult<T>) -> String {
    read.err().map(|fault| fault.field).unwrap_or_else(|| "no fault".to_owned())
}

#[test]
fn logins_are_read_in_any_order_and_strictly() {
    for body in [
        r#"{"username":"ann","password":"p\u00e4ss"}"#,
        r#"{"password":"päss", "username":"ann", "grant_type":"password"}"#,
    ] {
        let login = read_login(body.as_bytes())
            .map_err(|fault| fault.field)
            .unwrap_or_else(|f| panic!("{f}"));
        assert_eq!((login.username.as_str(), login.password.as_str()), ("ann", "päss"));
        assert!(login.life_s.is_none() && login.roles.is_none());
    }
    for (body, at) in [
        (r#"{"username":"ann"}"#, "password"),
        (r#"{"password":"x"}"#, "username"),
        (r#"{"username":"a","username":"b","password":"x"}"#, "username"),
        (r#"{"username":"a","password":7}"#, "password"),
        (r#"{"username":"a","password":null}"#, "password"),
        (r#"{"username":"a","password":"x","grant_type":"implicit"}"#, "grant_type"),
        (r#"{"username":"a","password":"x","expires_in_s":0}"#, "expires_in_s"),
        (r#"{"username":"a","password":"x","expires_in_s":31622401}"#, "expires_in_s"),
        (r#"{"username":"a","password":"x","roles":["root"]}"#, "roles[0]"),
        (r#"{"username":"a","password":"x","roles":["reader","writer"]}"#, "roles"),
        (r#"{"username":"a","password":"x","more":1}"#, "more"),
    ] {
        assert_eq!(field(read_login(body.as_bytes())), at, "{body}");
    }
}

#[test]
fn forms_are_read_as_oauth_writes_them() {
    let form =
        "grant_type=password&client_id=x&username=ann%40example.com&password=a+b%26c%C3%A4&scope=";
    let Ok(login) = read_login_form(form.as_bytes()) else { panic!("a fault") };
    assert_eq!((login.username.as_str(), login.password.as_str()), ("ann@example.com", "a b&cä"));
    assert!(login.roles.is_none());
    let scoped =
        "grant_type=password&username=a&password=b&scope=writer:orders+reader&expires_in_s=60";
    let Ok(login) = read_login_form(scoped.as_bytes()) else { panic!("a fault") };
    let roles: Vec<String> =
        login.roles.iter().flat_map(Grants::iter).map(Grant::to_string).collect();
    assert_eq!(
        (roles, login.life_s),
        (vec!["reader".to_owned(), "writer:orders".to_owned()], Some(60))
    );
    for (form, at) in [
        ("username=a&password=b", "grant_type"),
        ("grant_type=refresh_token&username=a&password=b", "grant_type"),
        ("grant_type=password&password=b", "username"),
        ("grant_type=password&username=a", "password"),
        ("grant_type=password&username=a&password=%zz", "password"),
        ("grant_type=password&username=a&password=b&password=c", "password"),
        ("grant_type=password&username=a&password=b&scope=root", "scope"),
        ("grant_type=password&username=a&password=b&expires_in_s=%2B5", "expires_in_s"),
        ("\u{fffd}", "grant_type"),
    ] {
        assert_eq!(field(read_login_form(form.as_bytes())), at, "{form}");
    }
    assert_eq!(field(read_login_form(b"grant_type=password&username=\xff")), "grant_type");
}

#[test]
fn accounts_and_changes_are_read() {
    let body = br#"{"name":"ann","password":"12345678","roles":["admin","reader:orders"]}"#;
    let Ok(account) = read_account(body) else { panic!("a fault") };
    assert_eq!((account.name.as_str(), account.roles.iter().count()), ("ann", 2));
    let keys_only = read_account(br#"{"name":"ci","password":null,"roles":[]}"#);
    assert!(keys_only.is_ok_and(|account| account.password.is_none()));
    for (body, at) in [
        (r#"{"name":"Ann","roles":[]}"#, "name"),
        (r#"{"roles":[]}"#, "name"),
        (r#"{"name":"ann"}"#, "roles"),
        (r#"{"name":"ann","roles":["writer:../x"]}"#, "roles[0]"),
        (r#"{"name":"ann","roles":"admin"}"#, "roles"),
    ] {
        assert_eq!(field(read_account(body.as_bytes())), at, "{body}");
    }
    assert!(read_change(br#"{"enabled":false}"#).is_ok_and(|change| change.enabled == Some(false)));
    assert!(read_change(b"{}").is_err());
    assert_eq!(field(read_change(br#"{"enabled":"no"}"#)), "enabled");
    assert_eq!(field(read_password(br#"{"current":"x"}"#)), "password");
}

#[test]
fn keys_say_when_they_end_in_one_way() {
    let body = br#"{"role":"writer","log":"orders","expires_in_s":60,"label":"ci","account":null}"#;
    let Ok(key) = read_key(body) else { panic!("a fault") };
    assert_eq!((key.grant.to_string().as_str(), key.end), ("writer:orders", Some(End::In(60))));
    assert_eq!(End::In(60).at_us(5), Ok(60_000_005));
    assert_eq!(End::At(7).at_us(6), Ok(7));
    assert_eq!(field(End::At(7).at_us(7)), "expires_at");
    for (body, at) in [
        (r#"{}"#, "role"),
        (r#"{"role":"writer:orders"}"#, "role"),
        (r#"{"role":"writer","log":"-x"}"#, "log"),
        (r#"{"role":"writer","expires_at":"soon"}"#, "expires_at"),
        (r#"{"role":"writer","expires_at":"2999-01-01","expires_in_s":5}"#, "expires_in_s"),
        (r#"{"role":"writer","label":""}"#, "label"),
        (r#"{"role":"writer","account":"A"}"#, "account"),
    ] {
        assert_eq!(field(read_key(body.as_bytes())), at, "{body}");
    }
    assert!(read_rotation(b"{}").is_ok_and(|rotation| rotation.overlap_s == 0));
    assert_eq!(field(read_rotation(br#"{"overlap_s":2592001}"#)), "overlap_s");
    assert!(read_logout(b"{}").is_ok_and(|everywhere| !everywhere));
    assert_eq!(field(read_rotate(br#"{"retired":true}"#)), "retired");
}

proptest::proptest! {
    #[test]
    fn whatever_is_sent_is_read_or_refused(
        bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
        text in r#"[{}":,a-z%&=+\\0-9]{0,80}"#,
    ) {
        let fields = format!(r#"{{"password":"{text}","username":"{text}","role":"{text}"}}"#);
        for body in [&bytes, text.as_bytes(), fields.as_bytes()] {
            let _ = crate::fuzzed::body(body);
        }
    }
}
