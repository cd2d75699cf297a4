import MartletConfig
import MartletCore
import Testing

/// File options in the URL of an account store.
@Suite struct PostgreSQLFileTests {
    @Test func `files of a PostgreSQL URL are relative to the configuration`() {
        let rows = [
            ("?sslrootcert=ca.pem", "?sslrootcert=/etc/gw/ca.pem"),
            (
                "?sslmode=verify-full&sslcert=tls/c.pem&sslkey=tls/k.pem",
                "?sslmode=verify-full&sslcert=/etc/gw/tls/c.pem&sslkey=/etc/gw/tls/k.pem"
            ),
            (
                "?sslcrl=a%20b.crl&sslcrldir=crls&passfile=.pgpass",
                "?sslcrl=/etc/gw/a%20b.crl&sslcrldir=/etc/gw/crls&passfile=/etc/gw/.pgpass"
            ),
            ("?sslrootcert=/ca.pem", "?sslrootcert=/ca.pem"), ("?sslrootcert=system", "?sslrootcert=system"),
            ("?sslrootcert=%zz", "?sslrootcert=%zz"), ("?application_name=ca.pem", "?application_name=ca.pem"),
            ("?sslrootcert=", "?sslrootcert="), ("", ""),
        ]
        for (written, resolved) in rows {
            let text = minimalFile + "accounts: { url: \"postgresql://u:p%40@h/d\(written)\" }\n"
            let (configuration, lines) = decode(Array(text.utf8), file: "/etc/gw/config.yaml")
            #expect(configuration?.accounts?.url.value == "postgresql://u:p%40@h/d\(resolved)", "\(lines)")
        }
    }
}
