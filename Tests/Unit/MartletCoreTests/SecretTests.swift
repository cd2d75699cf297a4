import MartletCore
import Testing

@Suite struct `A secret` {
    @Test func `does not wipe an array that a caller retained`() {
        let kept: [UInt8]
        do {
            let secret = Secret(Array("a word that is long enough to live on the heap".utf8))
            kept = secret.withBytes { $0 }
        }
        #expect(kept == Array("a word that is long enough to live on the heap".utf8))
    }

    @Test func `does not wipe the array it was made from`() {
        let source = Array("a word that is long enough to live on the heap".utf8)
        do { _ = Secret(source) }
        #expect(source == Array("a word that is long enough to live on the heap".utf8))
    }

    @Test func `is always printed redacted`() {
        let secret = Secret("word")
        #expect("\(secret)" == "<redacted>" && String(reflecting: secret) == "<redacted>")
        #expect(Mirror(reflecting: secret).children.isEmpty)
    }
}
