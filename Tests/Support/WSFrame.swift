/// Frames as each side sends them, and pieces of them.
package enum WSFrame {
    private static let mask: [UInt8] = [1, 2, 3, 4]

    /// 8 bytes, 6 of them the header.
    package static let clientText: [UInt8] = [0x81, 0x82] + mask + [0x69, 0x6B]
    package static let clientClose: [UInt8] = [0x88, 0x82] + mask + [0x02, 0xEA]
    /// 4 bytes, 2 of them the header.
    package static let serverText: [UInt8] = [0x81, 2, 0x68, 0x69]
    package static let serverClose: [UInt8] = [0x88, 2, 0x03, 0xE8]

    /// All but the last byte.
    package static let clientTextStart = Array(clientText[..<7])
    package static let clientTextEnd = Array(clientText[7...])
    package static let clientCloseStart = Array(clientClose[..<7])
    package static let clientCloseEnd = Array(clientClose[7...])
    package static let serverTextStart = Array(serverText[..<3])
    package static let serverTextEnd = Array(serverText[3...])
    package static let serverCloseStart = Array(serverClose[..<3])
    package static let serverCloseEnd = Array(serverClose[3...])

    /// All but the first byte.
    package static let clientTextRest = Array(clientText[1...])
    package static let serverTextRest = Array(serverText[1...])
    package static let clientCloseRest = Array(clientClose[1...])
    package static let serverCloseRest = Array(serverClose[1...])

    // Concatenated here: the compiler is slow at operators within long tables.
    package static let twoClientTexts = clientText + clientText
    package static let clientTextAndHeader = clientText + [0x81]
    package static let clientTextAndServerText = clientText + serverText
    package static let serverTextAndClientText = serverText + clientText
    package static let clientTextEndAndText = clientTextEnd + clientText
    package static let serverTextEndAndText = serverTextEnd + serverText
    package static let clientTextAndClose = clientText + clientClose
    package static let serverTextAndClose = serverText + serverClose
    package static let clientCloseAndText = clientClose + clientText
    package static let serverCloseAndText = serverClose + serverText
    package static let clientCloseAndByte = clientClose + [0xFF]
    package static let clientCloseEndAndText = clientCloseEnd + clientText
    package static let serverCloseEndAndText = serverCloseEnd + serverText
    package static let clientTextEndAndClose = clientTextEnd + clientClose
    package static let serverTextEndAndClose = serverTextEnd + serverClose
    package static let serverTextEndAndTextAndClose = serverTextEndAndText + serverClose
    package static let serverTextEndAndCloseStart = serverTextEnd + serverCloseStart
    package static let serverTextEndAndCloseByte = serverTextEnd + [0x88]
    package static let serverTextEndAndClientText = serverTextEnd + clientText
}
