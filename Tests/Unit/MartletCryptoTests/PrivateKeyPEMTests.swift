import MartletCore
import MartletCrypto
import Testing

@Suite struct `PEM of private keys` {
    @Test(arguments: [PrivateKey.Kind.p256, .rsa2048])
    func `what is written can be read, and is PKCS 8`(_ kind: PrivateKey.Kind) throws {
        let key = try PrivateKey(generating: kind)
        let pem = try key.pkcs8PEM()
        let text = pem.withBytes { String(decoding: $0, as: UTF8.self) }
        #expect(text.hasPrefix("-----BEGIN PRIVATE KEY-----\n") && text.hasSuffix("-----END PRIVATE KEY-----\n"))
        let read = try PrivateKey(pem: pem)
        let message = Array("message".utf8)
        #expect(key.publicKey.verify(try read.sign(message), over: message))
    }
}
