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
    init(in folder: DemoFolder) throws(StartError) {
        let made: EphemeralCertificate
        do {
            made = try EphemeralCertificate(for: Self.names, life: .seconds(7 * 24 * 3600), clock: .system)
        } catch {
            throw StartError(error, exit: .internalFault)
        }
        authorityFile = try folder.write(made.authority, to: "ca.pem")
        certificateFile = try folder.write(made.certificate, to: "cert.pem")
        keyFile = try folder.write(made.key, to: "key.pem")
    }
}
