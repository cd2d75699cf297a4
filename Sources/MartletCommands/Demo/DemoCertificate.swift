private import Glibc
internal import MartletCore
internal import MartletServer
internal import MartletTLS

/// The certificate of the demo and its certificate authority, as files in the demo's folder.
struct DemoCertificate: Sendable {
    private static let names = ["DNS:localhost", "IP:127.0.0.1", "IP:::1"]

    let authorityFile: String
    let certificateFile: String
    let keyFile: String

    /// Generates both and writes the files; the key is readable only by this user.
    init(in folder: String) throws(StartError) {
        authorityFile = "\(folder)/ca.pem"
        certificateFile = "\(folder)/cert.pem"
        keyFile = "\(folder)/key.pem"
        let made: EphemeralCertificate
        do {
            made = try EphemeralCertificate(for: Self.names, life: .seconds(7 * 24 * 3600), clock: .system)
        } catch {
            throw StartError(code: error.code, message: error.message, exit: .internalFault)
        }
        try Self.write(made.authority, to: authorityFile)
        try Self.write(made.certificate, to: certificateFile)
        try made.key.withBytes { bytes throws(StartError) in try Self.write(bytes, to: keyFile) }
    }

    private static func write(_ bytes: [UInt8], to path: String) throws(StartError) {
        let file = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            throw StartError(code: "server.demo_files", message: "cannot write \(path)", exit: .unavailable)
        }
        defer { close(file) }
        guard unsafe Glibc.write(file, bytes, bytes.count) == bytes.count else {
            throw StartError(code: "server.demo_files", message: "cannot write \(path)", exit: .unavailable)
        }
    }
}
