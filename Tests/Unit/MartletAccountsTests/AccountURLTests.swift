import MartletAccounts
import MartletCore
import Testing

@Suite struct AccountURLTests {
    @Test(arguments: [
        ("sqlite:martlet.db", "martlet.db"), ("sqlite:/var/lib/martlet/a b.db", "/var/lib/martlet/a b.db"),
        ("SQLite:a?b#c", "a?b#c"), ("sqlite:C:x", "C:x"),
    ])
    func `uses the text after sqlite: as a path`(text: String, path: String) throws {
        guard case .sqlite(let found) = try AccountURL(text) else {
            Issue.record("not SQLite")
            return
        }
        #expect(found == path)
    }

    @Test(arguments: [
        "postgresql://host/db", "postgres://u:p@host:5433/db?sslmode=verify-full", "postgresql://[::1]/db",
        "postgresql:///db?host=/run/postgresql", "postgresql://%2Frun%2Fpostgresql/db", "postgresql://a,b:1,c/db",
        "postgresql://a:1,b:2/db?target_session_attrs=read-write", "postgresql:///db?hostaddr=127.0.0.1",
    ])
    func `accepts the URLs that libpq accepts`(text: String) throws {
        guard case .postgresql = try AccountURL(text) else {
            Issue.record("not PostgreSQL")
            return
        }
    }

    @Test(arguments: [
        "", "martlet.db", "mysql://x/y", "sqlite:", "sqlite:folder/", "sqlite::memory:", "sqlite:a\0b", "sqlite:a\nb",
        "postgresql:", "postgresql://", "postgresql:///db", "postgresql://host/db?nonsense=1",
        "postgresql://h/d?sslmode=zzz", "postgresql://h:x/db",
        "postgresql://h:0/db", "postgresql://h:65536/db", "postgresql://h:1,i:2,j:3/db?hostaddr=127.0.0.1",
        "postgresql://a,,b/db", "postgresql://h/db?service=x", "postgresql://[::1/db", "postgresql://h/db%zz",
        "postgresql://h/d\0b",
    ])
    func `rejects URLs without a database`(text: String) {
        let failure = #expect(throws: AccountError.self) { _ = try AccountURL(text) }
        #expect(failure?.code == .accountsBadURL)
    }

    @Test(arguments: [
        "postgresql://u:open-sesame@host/db", "postgresql://u:open-sesame@h:x/db", "postgresql://u:open-sesame",
        "postgresql://u:open-sesame@h/db?nonsense=1", "postgresql://u:open-sesame@[::1/db", "pg://u:open-sesame@h/db",
        "postgresql://u:open-sesame%zz@h/db", "postgresql://h/db?password=open-sesame&x=1",
    ])
    func `never shows a password`(text: String) {
        do {
            let url = try AccountURL(text)
            #expect(!"\(url) \(String(reflecting: url))".contains("sesame"))
        } catch {
            #expect(!"\(error) \(String(reflecting: error))".contains("sesame"))
        }
    }
}
