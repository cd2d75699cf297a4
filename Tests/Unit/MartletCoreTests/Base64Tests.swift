import MartletCore
import Testing

@Suite struct Base64Tests {
    // RFC 4648 §10, and the digits that differ in the other alphabet.
    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"), ("~~~???", "fn5+Pz8/"),
    ])
    func `encodes and decodes, with padding and without`(text: String, encoded: String) {
        let bytes = Array(text.utf8)
        let bare = encoded.filter { $0 != "=" }
        #expect(Base64.encode(bytes, padding: .required) == encoded)
        #expect(Base64.encode(bytes, padding: .absent) == bare)
        #expect(Base64.decode(Array(encoded.utf8)[...], padding: .required) == bytes)
        #expect(Base64.decode(Array(bare.utf8)[...], padding: .absent) == bytes)
    }

    @Test(arguments: [
        "Zg", "Zg=", "Zg===", "Z===", "====", "=", "Zh==", "Zm9=", "Zm8=Zm8=", "Zg==\n", " Zg==", "Z g=", "fn5-Pz8_",
        "Zm9v=", "Zg=\u{3D}=", "Zm9ü",
    ])
    func `refuses every other spelling`(text: String) {
        #expect(Base64.decode(Array(text.utf8)[...], padding: .required) == nil)
    }

    @Test(arguments: ["Zg==", "Z", "Zh", "Zm9", "fn5-Pz8_", "Zm9v="])
    func `refuses padding and spare bits where there is to be no padding`(text: String) {
        #expect(Base64.decode(Array(text.utf8)[...], padding: .absent) == nil)
    }
}
