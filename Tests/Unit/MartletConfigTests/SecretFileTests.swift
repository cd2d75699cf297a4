import Foundation
import Glibc
import MartletConfig
import MartletCore
import MartletTesting
import Testing

/// Permissions of files with secrets.
@Suite struct SecretFileTests {
    @Test func `secret files that others may read are reported`() throws {
        let folder = try TemporaryFolder()
        func key(_ name: String, _ text: String, mode: Int) throws {
            try folder.write(text, to: name)
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: folder.file(name))
        }
        try key("open", "sqlite:a.db", mode: 0o644)
        try key("closed", "sqlite:a.db", mode: 0o600)
        try key("private.pem", "-----BEGIN PRIVATE KEY-----\n", mode: 0o640)
        // Of another user than root, whose files may have a group that reads them.
        if geteuid() == 0 { #expect(unsafe chown(folder.file("private.pem"), 65534, 0) == 0) }
        try key("public.pem", "-----BEGIN PUBLIC KEY-----\n", mode: 0o644)
        func lines(_ more: String) -> [String] {
            let text = minimalFile + more
            return decode(Array(text.utf8), file: folder.file("config.yaml")).lines
        }
        #expect(lines("accounts: { url_file: closed }\n") == [])
        let open = lines("accounts: { url_file: open }\n")
        #expect(open.count == 1 && open[0].contains(":4:23: warning: ") && open[0].contains("is readable by everyone"))
        #expect(open[0].hasSuffix("(mode 0644): chmod 600 or 400 [config.file_exposed]"))
        let assertion = lines(
            "assertion: { issuer: a, key: x, verify_key_files: [private.pem, public.pem] }\n")
        #expect(
            assertion.count == 1 && assertion[0].contains("private.pem")
                && assertion[0].contains("readable by its group"))
        guard geteuid() == 0 else { return }
        #expect(unsafe chown(folder.file("private.pem"), 0, 65534) == 0)
        #expect(lines("assertion: { issuer: a, key: x, verify_key_files: [private.pem] }\n") == [])
    }
}
