import MartletCore
import MartletTesting
import Testing

@testable import MartletConfig

@Suite struct `The configuration of the admin listener` {
    private static let admin = "admin: { address: 127.0.0.1:9955, token: 0123456789abcdef0123456789abcdef }\n"

    private func alone(_ text: String) -> (admin: AdminConfiguration?, lines: [String]) {
        let read = GatewayConfiguration.decodeAdmin(text: Array(text.utf8), file: "gw.yaml", environment: { _ in nil })
        return (read.admin, read.diagnostics.sorted.map(\.description))
    }

    @Test func `is read alone, whatever is wrong in other blocks`() {
        for other in [
            "limmits: {}\n", "version: 2\n", "routes: 7\n", "log: { level: loud }\n",
            "store: { url: \"${NO_SUCH}\" }\n",
            "accounts: { url: \"sqlite:a.db\", key_file: /nowhere/key }\n", "version: 1\nversion: 1\n",
        ] {
            let text = other + Self.admin
            #expect(load(text).configuration == nil, "\(other)")
            let read = alone(text)
            #expect(read.admin?.address.value == .ip(host: "127.0.0.1", port: 9955) && read.lines == [], "\(other)")
            #expect(read.admin?.token?.value.count == 32, "\(other)")
        }
        #expect(alone("version: 2\n").admin?.isImplied == true)
        let off = alone("admin: off\nlimmits: {}\n")
        #expect(off.admin == nil && off.lines == [])
    }

    @Test func `is not read where it has an error itself`() {
        for (text, line) in [
            ("admin: { adress: 127.0.0.1:1 }\n", "gw.yaml:1:10: error: unknown key 'adress' in admin"),
            ("admin: { token_file: /nowhere/token }\n", "/nowhere/token"),
            ("admin: { socket: \"127.0.0.1:1\" }\n", "[config.bad_address]"),
            ("admin: { address: \"127.0.0.1:${NO_SUCH}\" }\n", "[config.unset_variable]"),
            ("admin: {}\na: [\n", "[config.yaml_syntax]"), ("- a\n", "[config.wrong_type]"),
        ] {
            let read = alone(text)
            #expect(read.admin == nil && read.lines.count == 1, "\(text): \(read.lines)")
            #expect(read.lines.first?.contains(line) == true, "\(text): \(read.lines)")
        }
    }

    @Test func `warns of a certificate that commands and probes do not have`() {
        func warnings(_ mode: String) -> [String] {
            let tls = "{ certificate_file: c.pem, key_file: k.pem, client_ca_file: ca.pem, client_auth: \(mode) }"
            return decode(Array((minimalFile + "admin: { tls: \(tls) }\n").utf8)).lines
        }
        #expect(warnings("optional") == [])
        let found = warnings("required")
        #expect(found.count == 1 && found[0].contains(": warning: client_auth: the commands of martlet"), "\(found)")
        #expect(found.first?.hasSuffix("[config.admin_unreachable]") == true, "\(found)")
    }

    @Test func `Unix sockets are for the user and the group alone`() {
        let beside = alone("admin: { socket: \"unix:run/admin.sock\" }\n").admin
        #expect(beside?.listeners.map { $0.socketFile?.mode } == [nil, 0o660])
        let instead = alone("admin: { address: \"unix:/run/admin.sock\" }\n").admin
        #expect(instead?.listeners.map { $0.socketFile?.mode } == [0o660])
    }
}
