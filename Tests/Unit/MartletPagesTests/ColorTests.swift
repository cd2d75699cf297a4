import Testing

@testable import MartletPages

@Suite struct `Colors of pages` {
    @Test func `colors are read in two forms and nothing else`() {
        #expect(RGBColor("#0a7")?.css == "#00aa77" && RGBColor("#00Aa77")?.css == "#00aa77")
        for text in [
            "", "#", "red", "0a7", "#0a", "#0a70", "#00aa7", "#00aa777", "#00aa7g", "#0a7;}", "rgb(0,0,0)", "#１２３",
            "# 12",
        ] {
            #expect(RGBColor(text) == nil, "\(text)")
        }
    }

    @Test func `contrasts are those of the specification`() {
        #expect(abs(RGBColor.white.contrast(with: .black) - 21) < 0.001)
        #expect(abs(RGBColor(0x767676).contrast(with: .white) - 4.54) < 0.01)
        #expect(abs(RGBColor(0x07C160).contrast(with: .white) - 2.3) < 0.1)
    }

    @Test(arguments: [true, false]) func `texts have 4.5 and edges 3`(isLight: Bool) {
        let palette = isLight ? Palette.light : .dark
        let texts = [
            ("ink", palette.ink, [palette.page, palette.card, palette.hover]),
            ("dim", palette.dim, [palette.page, palette.card]),
            ("error", palette.error, [palette.card, palette.errorBack, palette.page]),
            ("success", palette.success, [palette.successBack]), ("note", palette.note, [palette.noteBack]),
            ("apple", palette.appleText, [palette.apple]), ("wechat", Palette.weChatText, [Palette.weChat]),
        ]
        for (name, text, backs) in texts {
            for back in backs {
                #expect(text.contrast(with: back) >= 4.5, "\(name) on \(back.css): \(text.contrast(with: back))")
            }
        }
        #expect(palette.border.contrast(with: palette.card) >= 3 && palette.border.contrast(with: palette.page) >= 3)
        #expect(palette.apple.contrast(with: palette.card) > 15)
    }

    @Test func `any accent color can be read`() {
        for number in stride(from: 0 as UInt32, through: 0xFFFFFF, by: 0x03_0D1B) {
            let accent = RGBColor(number)
            for palette in [Palette.light, .dark] {
                let colors = Accent(accent, in: palette)
                #expect(colors.fill == accent)
                #expect(colors.fillText.contrast(with: colors.fill) >= 4.5, "\(accent.css)")
                #expect(colors.fillText.contrast(with: colors.fillHover) >= 4.5, "\(accent.css)")
                for back in [palette.page, palette.card] {
                    #expect(colors.edge.contrast(with: back) >= 3, "\(accent.css)")
                    #expect(colors.ink.contrast(with: back) >= 4.5, "\(accent.css)")
                }
            }
        }
    }

    @Test func `the text on an accent is black or white`() throws {
        #expect(Accent(try #require(RGBColor("#00aa77")), in: .light).fillText == .black)
        #expect(Accent(try #require(RGBColor("#ffee00")), in: .light).fillText == .black)
        #expect(Accent(try #require(RGBColor("#204080")), in: .dark).fillText == .white)
    }
}
