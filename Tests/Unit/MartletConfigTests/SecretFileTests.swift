import Foundation
import MartletConfig
import MartletCore
import MartletTesting
import Testing

/// Who may read the files with secrets.
@Suite struct SecretFileTests {
    private static let good = """
        version: 1
        upstreams: { echo: { endpoints: ["builtin:echo"] } }
        routes: [{ name: all, auth: none, upstream: echo }]

        """

    private func decode(
        _ bytes: [UInt8], file: String = "gw.yaml"
    ) -> (configuration: GatewayConfiguration?, lines: [String]) {
        let (configuration, diagnostics) = GatewayConfiguration.decode(
            text: bytes, file: file, environment: { _ in nil }, knownKinds: testKinds)
        return (configuration, diagnostics.sorted.map(\.description))
    }

    @Test func `secret files that others may read are told`() throws {
        let folder = try TemporaryFolder()
        func key(_ name: String, _ text: String, mode: Int) throws {
            try folder.write(text, to: name)
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: folder.file(name))
        }
        try key("open", "sqlite:a.db", mode: 0o644)
        try key("closed", "sqlite:a.db", mode: 0o600)
        try key("private.pem", "-----BEGIN PRIVATE KEY-----\n", mode: 0o640)
        try key("public.pem", "-----BEGIN PUBLIC KEY-----\n", mode: 0o644)
        func lines(_ more: String) -> [String] {
            let text = Self.good + more
            return decode(Array(text.utf8), file: folder.file("config.yaml")).lines
        }
        #expect(lines("accounts: { url_file: closed }\n") == [])
        let open = lines("accounts: { url_file: open }\n")
        #expect(open.count == 1 && open[0].contains(":4:23: warning: ") && open[0].contains("everybody may read it"))
        #expect(open[0].hasSuffix("(mode 0644): chmod 600, or 400 [config.file_exposed]"))
        let assertion = lines(
            "assertion: { issuer: a, key: x, verify_key_files: [private.pem, public.pem] }\n")
        #expect(assertion.count == 1 && assertion[0].contains("private.pem") && assertion[0].contains("its group may"))
    }
}
