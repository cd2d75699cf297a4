import MartletCore
import MartletIO
import MartletResponder
import Testing

@testable import MartletAdmin

@Suite struct `Access to the admin listener` {
    private static let token = "0123456789abcdef0123456789abcdef"

    private static let open = AdminAccess(token: nil, isPrivate: isPrivate)
    private static let protected = AdminAccess(token: Secret(token), isPrivate: isPrivate)
    private static let certified = AdminAccess(token: nil, acceptsCertificates: true, isPrivate: isPrivate)

    private static let isPrivate: @Sendable (SocketEndpoint) -> Bool = { $0.path?.hasPrefix("/private/") == true }

    private static func outcome(
        _ access: AdminAccess, _ need: AdminAccess.Need, from local: String = "127.0.0.1",
        _ fields: [(name: String, value: String)] = [], method: String = "POST", hasCertificate: Bool = false
    ) -> String {
        var request = LocalRequest(
            method: method, path: "/x", query: "", fields: [("Host", "gw.example.com:9901")] + fields, body: [],
            bodyBytes: 0, client: "", requestID: "r",
            local: local.hasPrefix("/") ? SocketEndpoint(path: local) : SocketEndpoint(literal: local, port: 9901))
        request.clientCertificate = hasCertificate ? [0x30] : nil
        return access.rejection(of: request, for: need).map { "\($0.status) \($0.code)" } ?? "allowed"
    }

    private static func bearer(_ value: String) -> [(name: String, value: String)] { [("Authorization", value)] }

    @Test func `reading needs no credential on this machine, and the token elsewhere`() {
        for local in ["127.0.0.1", "127.8.0.1", "::1", "/run/x.sock"] {
            #expect(Self.outcome(Self.protected, .reading, from: local) == "allowed", "\(local)")
            #expect(Self.outcome(Self.open, .metrics, from: local) == "allowed", "\(local)")
        }
        for local in ["10.0.0.7", "fe80::7", "::ffff:10.0.0.7"] {
            #expect(Self.outcome(Self.protected, .reading, from: local) == "401 credential_missing", "\(local)")
            #expect(Self.outcome(Self.protected, .metrics, from: local) == "401 credential_missing", "\(local)")
            let fields = Self.bearer("Bearer \(Self.token)")
            #expect(Self.outcome(Self.protected, .reading, from: local, fields) == "allowed", "\(local)")
            #expect(Self.outcome(Self.open, .reading, from: local) == "403 local_only", "\(local)")
        }
    }

    @Test func `probes need nothing anywhere, and metrics do not where they are open`() {
        let metrics = AdminAccess(token: Secret(Self.token), areMetricsOpen: true)
        for access in [Self.open, Self.protected, metrics] {
            #expect(Self.outcome(access, .probe, from: "10.0.0.7") == "allowed")
        }
        #expect(Self.outcome(metrics, .metrics, from: "10.0.0.7") == "allowed")
        #expect(Self.outcome(metrics, .reading, from: "10.0.0.7") == "401 credential_missing")
    }

    static let wrong = [
        "Bearer 0123456789abcdef0123456789abcdeF", "Bearer 0123456789abcdef", "Bearer", "Bearer ", "Basic \(token)",
        token, "Bearer \(token)x", "Bearer \(token) \(token)", "",
    ]

    @Test(arguments: wrong) func `a wrong token changes nothing`(value: String) {
        let outcome = Self.outcome(Self.protected, .change, Self.bearer(value))
        #expect(outcome == "401 credential_invalid", "\(value)")
    }

    @Test func `every change needs the token, in one field`() {
        let fields = Self.bearer("bearer  \(Self.token)".replacing("  ", with: " "))
        #expect(Self.outcome(Self.protected, .change) == "401 credential_missing")
        #expect(Self.outcome(Self.protected, .change, [("Cookie", "token=\(Self.token)")]) == "401 credential_missing")
        #expect(Self.outcome(Self.protected, .change, fields) == "allowed")
        #expect(Self.outcome(Self.protected, .change, from: "10.0.0.7", fields) == "allowed")
        #expect(Self.outcome(Self.protected, .change, fields + fields) == "401 credential_invalid")
    }

    @Test func `changes come over a private socket, or with a credential`() {
        for access in [Self.open, Self.protected, Self.certified] {
            #expect(Self.outcome(access, .change, from: "/private/a") == "allowed")
            let rejection = access.isConfigured ? "401 credential_missing" : "403 local_only"
            for local in ["127.0.0.1", "127.8.0.1", "::1", "/run/x.sock", "10.0.0.7"] {
                #expect(Self.outcome(access, .change, from: local) == rejection, "\(local)")
            }
        }
    }

    @Test func `a wrong token is rejected wherever it comes from, whatever is asked for`() {
        let wrong = Self.bearer("Bearer 0123456789abcdef0123456789abcdeF")
        for access in [Self.open, Self.protected, Self.certified, AdminAccess(token: nil, areMetricsOpen: true)] {
            for local in ["127.0.0.1", "/private/a", "10.0.0.7"] {
                for need in [AdminAccess.Need.reading, .metrics, .change] {
                    let outcome = Self.outcome(access, need, from: local, wrong)
                    #expect(outcome == "401 credential_invalid", "\(local) \(need)")
                }
                #expect(Self.outcome(access, .probe, from: local, wrong) == "allowed")
            }
        }
        // What a proxy before the listener wants to know is not the token.
        #expect(Self.outcome(Self.protected, .reading, Self.bearer("Basic YTpi")) == "allowed")
    }

    @Test func `without a credential in the file, no page changes anything`() {
        #expect(Self.outcome(Self.open, .change, [("Sec-Fetch-Site", "same-origin")]) == "403 cross_site")
        #expect(Self.outcome(Self.open, .change, [("Content-Type", "text/plain; x")]) == "403 cross_site")
        #expect(Self.outcome(Self.open, .change, [("Origin", "http://gw.example.com:9901")]) == "403 cross_site")
    }

    @Test func `a page of another site gets nothing, even with the token`() {
        let token = Self.bearer("Bearer \(Self.token)")
        for fields in [
            [("Origin", "http://evil.example")], [("Origin", "null")], [("Sec-Fetch-Site", "cross-site")],
            [("Sec-Fetch-Site", "same-site")], [("Origin", "http://gw.example.com")],
            [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")],
        ] {
            #expect(Self.outcome(Self.protected, .change, token + fields) == "403 cross_site", "\(fields)")
        }
        #expect(
            Self.outcome(Self.protected, .reading, [("Sec-Fetch-Site", "cross-site")], method: "GET")
                == "403 cross_site")
        // A link to the dashboard that is followed.
        let link = [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")]
        #expect(Self.outcome(Self.protected, .reading, link, method: "GET") == "allowed")
        let (page, frame) = (("Sec-Fetch-Dest", "document"), ("Sec-Fetch-Dest", "iframe"))
        #expect(Self.outcome(Self.protected, .reading, link + [page], method: "GET") == "allowed")
        #expect(Self.outcome(Self.protected, .reading, link + [frame], method: "GET") == "403 cross_site")
        #expect(Self.outcome(Self.protected, .reading, link + [page, frame], method: "GET") == "403 cross_site")
    }

    @Test func `a field of another site counts wherever it stands`() {
        let (own, site) = (("Origin", "http://gw.example.com:9901"), ("Sec-Fetch-Site", "same-origin"))
        let foreign = [("Origin", "http://evil.example"), ("Sec-Fetch-Site", "cross-site")]
        for field in foreign {
            for fields in [[own, site, field], [field, own, site]] {
                let token = Self.bearer("Bearer \(Self.token)")
                #expect(Self.outcome(Self.protected, .change, token + fields) == "403 cross_site", "\(fields)")
                #expect(Self.outcome(Self.protected, .reading, fields, method: "GET") == "403 cross_site", "\(fields)")
            }
        }
        let link = [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Mode", "cors")]
        #expect(Self.outcome(Self.protected, .reading, link, method: "GET") == "403 cross_site")
    }

    @Test func `the dashboard's own page changes with the token`() {
        let token = Self.bearer("Bearer \(Self.token)")
        let page = [
            ("Origin", "http://gw.example.com:9901"), ("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Mode", "cors"),
        ]
        #expect(Self.outcome(Self.protected, .change, token + page) == "allowed")
        #expect(Self.outcome(Self.protected, .change, page) == "401 credential_missing")
    }

    @Test func `a client certificate counts as the token`() {
        #expect(Self.outcome(Self.certified, .change, from: "10.0.0.7", hasCertificate: true) == "allowed")
        #expect(Self.outcome(Self.certified, .change, from: "10.0.0.7") == "401 credential_missing")
        #expect(Self.outcome(Self.certified, .change) == "401 credential_missing")
        // No authority is configured that could have verified it.
        #expect(Self.outcome(Self.protected, .change, hasCertificate: true) == "401 credential_missing")
    }
}

@Suite struct `Resources of the admin listener` {
    @Test func `paths name resources, escapes included`() {
        #expect(AdminResource(path: "/") == .file(.page))
        #expect(AdminResource(path: "/dashboard.js") == .file(.script))
        #expect(AdminResource(path: "/healthz") == .ready)
        #expect(AdminResource(path: "/upstreams/api/drain") == .drain(upstream: "api"))
        #expect(AdminResource(path: "/subjects/apple%3A00%2F1/claims") == .claims(subject: "apple:00/1"))
        for path in [
            "", "/x", "/metrics/", "/upstreams//drain", "/subjects/%zz/claims", "/subjects/%ff/claims", "/subjects/%4",
            "/upstreams/a/b/drain", "/LIVEZ",
        ] {
            #expect(AdminResource(path: path) == nil, "\(path)")
        }
    }
}
