# examples/local.mk - the quick start, its data, and programs on the public header.
EXTRA_DIST += \
	examples/quickstart.sh \
	examples/japanese_vowels/JapaneseVowels_TEST.ts \
	examples/japanese_vowels/JapaneseVowels_TRAIN.ts \
	examples/japanese_vowels/README.md
