import MartletCore
import MartletCrypto
import MartletHTTP

/// A certificate in DER, or a `Client-Cert` field: whatever it has in it, an identity is short text without controls.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    if let chain = try? ClientCertificateFields.chain(bytes) {
        precondition(chain.count <= ClientCertificateFields.maximumChain && chain.allSatisfy { !$0.isEmpty })
    }
    let field = Array(":\(Base64.encode(bytes, padding: .required)):".utf8)
    let decoded = try? ClientCertificateFields.certificate(field)
    precondition(
        bytes.isEmpty || bytes.count > ClientCertificateFields.maximumBytes ? decoded == nil : decoded == bytes)
    check((try? ClientCertificateFields.certificate(bytes)) ?? bytes)
    return 0
}

private func check(_ der: [UInt8]) {
    guard let certificate = try? ClientCertificate(der: der) else { return }
    precondition(certificate.der == der && certificate.fingerprint.utf8.count == 64)
    precondition(certificate.thumbprint.utf8.count == 43)
    for kind in ClientIdentityKind.allCases {
        guard let name = try? certificate.identity(kind) else { continue }
        precondition((1...255).contains(name.utf8.count))
        precondition(name.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control })
        precondition(kind != .sanDNS || !name.contains("*") && name.lowercased() == name)
    }
}
