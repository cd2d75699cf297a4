import MartletCore
import MartletTesting
import Testing

@testable import MartletCrypto

@Suite struct WebhookSignerTests {
    /// The example of the Standard Webhooks specification's reference implementations.
    @Test(arguments: ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])
    func `signs id, time and body`(key: String) throws {
        let signer = try #require(WebhookSigner(Secret(key)))
        let headers = signer.headers(
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek", at: UnixTime(seconds: 1_614_265_330),
            body: Array(#"{"test": 2432232314}"#.utf8))
        #expect(headers.map(\.name) == ["webhook-id", "webhook-timestamp", "webhook-signature"])
        #expect(
            headers.map(\.value) == [
                "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
            ])
    }

    @Test(arguments: [23, 24, 64, 65])
    func `takes keys of 24 to 64 bytes`(count: Int) {
        let key = Base64.encode([UInt8](repeating: 7, count: count), padding: .required)
        #expect((WebhookSigner(Secret(key)) != nil) == (24...64).contains(count))
    }

    @Test(arguments: [
        "", "whsec_", "correct horse battery staple and more", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS", "whsec_whsec_",
    ])
    func `rejects what is no base64`(key: String) {
        #expect(WebhookSigner(Secret(key)) == nil)
    }
}
